/* The networks for images, one line each (no guard: included where STI_MODEL is
 * defined): name, sti_model_BUILDER of its family, the variant that this gets, the side
 * of the photographs that it was published for (0: small images), what it is. */
STI_MODEL("mlp", mlp, 0, 0, "dense layers with ReLU or signs: 2 hidden of 256")
STI_MODEL("lenet5", lenet5, 0, 0, "LeNet-5 (1998): 61,706 parameters on MNIST")
STI_MODEL("lenet300", lenet300, 0, 0,
          "LeNet-300-100: two dense layers, 266,610 parameters on MNIST")
STI_MODEL("lenet5-caffe", lenet5_caffe, 0, 0,
          "LeNet-5 as Caffe has it (20, 50, 500): 431,080 parameters on MNIST")
STI_MODEL("smallcnn", smallcnn, 0, 0,
          "3 convolutions, 15,722 parameters: for studies of noise")
STI_MODEL("smallcnn-bn", smallcnn, 1, 0, "the same with batch-norm")
STI_MODEL("alexnet", alexnet, 0, 224, "AlexNet, one column (2014)")
STI_MODEL("vgg11", vgg, 11, 224, "VGG-11 with batch-norm (2014)")
STI_MODEL("vgg13", vgg, 13, 224, "VGG-13 with batch-norm")
STI_MODEL("vgg16", vgg, 16, 224, "VGG-16 with batch-norm")
STI_MODEL("mobilenetv2", mobilenet, 0, 224, "MobileNetV2 (2018): inverted residuals")
STI_MODEL("mcunet-5fps", mobilenet, 1, 128,
          "MCUNet for 5 frames a second (2020), with biases in the place of batch-norm")
STI_MODEL("mcunet-5fps-bn", mobilenet, 2, 128, "the same with batch-norm")
STI_MODEL("resnet8", resnet, 8, 0, "3 stages of 1 block from 16 channels: small sets")
STI_MODEL("resnet20", resnet, 20, 0, "ResNet-20 for CIFAR (2015): 0.27 M parameters")
STI_MODEL("resnet32", resnet, 32, 0, "ResNet-32 for CIFAR")
STI_MODEL("resnet56", resnet, 56, 0, "ResNet-56 for CIFAR")
STI_MODEL("resnet18", resnet, 18, 224, "ResNet-18 (2015): 4 stages from 64 channels")
STI_MODEL("resnet34", resnet, 34, 224, "ResNet-34")
STI_MODEL("resnet50", resnet, 50, 224, "ResNet-50, bottleneck blocks")

# What is refused of folders in timm's layout; timm_full_test.sh reads sound ones.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1

config() { # STATUS JSON
    mkdir -p bad && printf '%s' "$2" >bad/config.json
    run "$1" import hf bad --out none.st
}
config 8 '{"architecture": "vit_base_patch16_224", "num_classes": 10}'
says err "resnet18, resnet34, resnet50 and mobilenetv2_100 are read"
config 4 '{"architecture": "resnet18"}'
config 4 '{"architecture": "resnet18", "num_classes": 1}'
config 4 '{"architecture": "resnet18", "num_classes": 10, "pretrained_cfg": {"input_size": [3, 0, 224]}}'
config 4 '{"architecture": "resnet18", "num_classes": 10, "pretrained_cfg": {"std": [0, 1, 1]}}'
config 4 '{"architecture": "resnet18", "num_classes": 3, "pretrained_cfg": {"label_names": ["a"]}}'
config 4 '{"architecture": "resnet18", "num_classes": 3, "num_classes": 3}'
config 4 '{"architecture": "resnet18", "num_classes": 10}' # no weights
[ ! -e none.st ] || fail "a refused import left a file"
finish

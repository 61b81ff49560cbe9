# Kernels for CUDA devices, where nvcc is found. Nothing else depends on them: the library
# target and its test are built with `tests` alone, and the test skips without a device.

find_program(STINT_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(STINT_NVCC)
  get_filename_component(cuda_bin ${STINT_NVCC} DIRECTORY)
  find_library(STINT_CUDART cudart_static
    HINTS ${cuda_bin}/../lib64 ${cuda_bin}/../targets/x86_64-linux/lib)
endif()
if(STINT_NVCC AND STINT_CUDART AND STINT_BUILD_TESTS AND NOT STINT_SANITIZE)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  # Its PTX is compiled by the driver of any newer device.
  set(STINT_CUDA_ARCH "sm_80" CACHE STRING "nvcc -arch=")
  set(object ${PROJECT_BINARY_DIR}/topk_cuda.o)
  # -ftz: sums of denormals as on the host, where the engine flushes them.
  add_custom_command(OUTPUT ${object}
    COMMAND ${STINT_NVCC} -std=c++17 -O3 -arch=${STINT_CUDA_ARCH} -ftz=true
      -Xcompiler -fPIC,-Wall,-Wextra -I${PROJECT_SOURCE_DIR}/src
      -I${PROJECT_SOURCE_DIR}/include -c ${PROJECT_SOURCE_DIR}/src/kernel/topk/cuda/topk.cu
      -o ${object}
    DEPENDS ${PROJECT_SOURCE_DIR}/src/kernel/topk/cuda/topk.cu
      ${PROJECT_SOURCE_DIR}/src/kernel/topk/cuda/topk_cuda.h
      ${PROJECT_SOURCE_DIR}/src/kernel/topk/topk_priv.h
    COMMENT "nvcc topk.cu")
  add_executable(topk_cuda_test EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/tests/kernel/cuda/topk_cuda_test.c ${object}
    $<TARGET_OBJECTS:stint_base> $<TARGET_OBJECTS:stint_kernel>)
  target_include_directories(topk_cuda_test PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(topk_cuda_test PRIVATE stint_flags PkgConfig::CMOCKA
    ${STINT_LIBRARIES} ${STINT_CUDART} stdc++ rt)
  add_dependencies(tests topk_cuda_test)
  add_test(NAME kernel/topk_cuda_test COMMAND topk_cuda_test)
  set_tests_properties(kernel/topk_cuda_test PROPERTIES LABELS quick TIMEOUT 300
    SKIP_RETURN_CODE 77)
endif()

# Kernels for CUDA devices, where nvcc is found. Nothing else depends on them: a library
# of each and its test are built with `tests` alone, and a test skips without a device.

find_program(STINT_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(STINT_NVCC)
  get_filename_component(cuda_bin ${STINT_NVCC} DIRECTORY)
  find_library(STINT_CUDART cudart_static
    HINTS ${cuda_bin}/../lib64 ${cuda_bin}/../targets/x86_64-linux/lib)
endif()

# tests/kernel/cuda/NAME.c with the object of CU_SOURCE (a path from the top of the tree,
# as those of the headers that it includes), which is compiled anew when they change.
function(stint_cuda_test NAME CU_SOURCE)
  get_filename_component(base ${CU_SOURCE} NAME_WE)
  set(object ${PROJECT_BINARY_DIR}/${base}_cuda.o)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE headers)
  # -ftz: sums of denormals as on the host, where the engine flushes them.
  add_custom_command(OUTPUT ${object}
    COMMAND ${STINT_NVCC} -std=c++17 -O3 -arch=${STINT_CUDA_ARCH} -ftz=true
      -Xcompiler -fPIC,-Wall,-Wextra -I${PROJECT_SOURCE_DIR}/src
      -I${PROJECT_SOURCE_DIR}/include -c ${PROJECT_SOURCE_DIR}/${CU_SOURCE} -o ${object}
    DEPENDS ${PROJECT_SOURCE_DIR}/${CU_SOURCE} ${headers}
    COMMENT "nvcc ${base}.cu")
  add_executable(${NAME} EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/tests/kernel/cuda/${NAME}.c ${object}
    $<TARGET_OBJECTS:stint_base> $<TARGET_OBJECTS:stint_kernel>)
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${NAME} PRIVATE stint_flags PkgConfig::CMOCKA
    ${STINT_LIBRARIES} ${STINT_CUDART} stdc++ rt)
  add_dependencies(tests ${NAME})
  add_test(NAME kernel/${NAME} COMMAND ${NAME})
  set_tests_properties(kernel/${NAME} PROPERTIES LABELS quick TIMEOUT 300
    SKIP_RETURN_CODE 77)
endfunction()

if(STINT_NVCC AND STINT_CUDART AND STINT_BUILD_TESTS AND NOT STINT_SANITIZE)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  # Its PTX is compiled by the driver of any newer device.
  set(STINT_CUDA_ARCH "sm_80" CACHE STRING "nvcc -arch=")
  stint_cuda_test(topk_cuda_test src/kernel/topk/cuda/topk.cu
    src/kernel/topk/cuda/topk_cuda.h src/kernel/topk/topk_priv.h)
  stint_cuda_test(trsv_cuda_test src/kernel/sparse/cuda/trsv.cu
    src/kernel/sparse/cuda/trsv_cuda.h src/kernel/sparse/sparse.h)
endif()

# Kernels for CUDA devices, where nvcc is found. The program is not linked with them: it
# loads the plug-in libstint_cuda.so where a device is asked for. Other objects are built
# with `tests` alone, and a test skips without a device.

find_program(STINT_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(STINT_NVCC)
  get_filename_component(cuda_bin ${STINT_NVCC} DIRECTORY)
  find_library(STINT_CUDART cudart_static
    HINTS ${cuda_bin}/../lib64 ${cuda_bin}/../targets/x86_64-linux/lib)
endif()

# OBJECT of CU_SOURCE, which is made anew when one of HEADERS changes; all below src/.
function(stint_cuda_object object cu_source)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE headers)
  # -ftz: floats that are denormal as on the host, where the engine flushes them.
  # -fmad: fused multiply-adds where the source says so and nowhere else.
  add_custom_command(OUTPUT ${object}
    COMMAND ${STINT_NVCC} -std=c++17 -O3 -arch=${STINT_CUDA_ARCH} -ftz=true -fmad=false
      -Xcompiler -fPIC,-Wall,-Wextra -I${PROJECT_SOURCE_DIR}/src
      -I${PROJECT_SOURCE_DIR}/include -c ${PROJECT_SOURCE_DIR}/src/${cu_source}
      -o ${object}
    DEPENDS ${PROJECT_SOURCE_DIR}/src/${cu_source} ${headers}
    COMMENT "nvcc ${cu_source}")
endfunction()

# tests/kernel/cuda/NAME.c with such an object.
function(stint_cuda_test name cu_source)
  set(object ${PROJECT_BINARY_DIR}/${name}.o)
  stint_cuda_object(${object} ${cu_source} ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/tests/kernel/cuda/${name}.c ${object}
    $<TARGET_OBJECTS:stint_base> $<TARGET_OBJECTS:stint_kernel>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE stint_flags PkgConfig::CMOCKA
    ${STINT_LIBRARIES} ${STINT_CUDART} stdc++ rt)
  add_dependencies(tests ${name})
  add_test(NAME kernel/${name} COMMAND ${name})
  set_tests_properties(kernel/${name} PROPERTIES LABELS quick TIMEOUT 300
    SKIP_RETURN_CODE 77)
endfunction()

if(STINT_NVCC AND STINT_CUDART)
  # Its PTX is compiled by the driver of any newer device.
  set(STINT_CUDA_ARCH "sm_80" CACHE STRING "nvcc -arch=")
  set(stint_tile_sources kernel/gram/cuda/kernel_tile.cu
    kernel/gram/cuda/kernel_tile_cuda.h kernel/gram/gram.h kernel/maths/maths.h
    kernel/maths/maths_f64.h)
  set(stint_trsv_sources kernel/sparse/cuda/trsv.cu kernel/sparse/cuda/trsv_cuda.h
    kernel/sparse/sparse.h)
endif()

if(STINT_NVCC AND STINT_CUDART AND NOT STINT_SANITIZE)
  set(object ${PROJECT_BINARY_DIR}/kernel_tile.o)
  stint_cuda_object(${object} ${stint_tile_sources})
  set(trsv_object ${PROJECT_BINARY_DIR}/trsv.o)
  stint_cuda_object(${trsv_object} ${stint_trsv_sources})
  add_library(stint_cuda MODULE ${object} ${trsv_object})
  set_target_properties(stint_cuda PROPERTIES LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(stint_cuda PRIVATE ${STINT_CUDART} stdc++ rt Threads::Threads
    ${CMAKE_DL_LIBS})
  target_link_options(stint_cuda PRIVATE -Wl,--exclude-libs,ALL)
  add_dependencies(stint stint_cuda)
  install(TARGETS stint_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(STINT_NVCC AND STINT_CUDART AND STINT_BUILD_TESTS AND NOT STINT_SANITIZE)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
  stint_cuda_test(topk_cuda_test kernel/topk/cuda/topk.cu
    kernel/topk/cuda/topk_cuda.h kernel/topk/topk_priv.h)
  stint_cuda_test(kernel_tile_cuda_test ${stint_tile_sources})
  stint_cuda_test(trsv_cuda_test ${stint_trsv_sources})
endif()

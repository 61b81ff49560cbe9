# Warnings of every target, sanitizers by STINT_SANITIZE, -Werror only where CI asks.

option(STINT_WERROR "Turn warnings into errors (CI)" OFF)
set(STINT_SANITIZE "" CACHE STRING "-fsanitize= list, for example address,undefined or thread")

add_library(stint_flags INTERFACE)
target_compile_options(stint_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
  -Wcast-qual -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough -Wswitch-enum
  -fno-common -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stint_flags INTERFACE
    -Wcast-align=strict -Wduplicated-cond -Wduplicated-branches -Wlogical-op
    -Wno-psabi)
endif()
if(STINT_WERROR)
  target_compile_options(stint_flags INTERFACE -Werror)
endif()
# Every symbol is found at start, so that no lookup maps pages of libraries later on.
include(CheckLinkerFlag)
check_linker_flag(C "-Wl,-z,relro,-z,now" STINT_HAS_BIND_NOW)
if(STINT_HAS_BIND_NOW)
  target_link_options(stint_flags INTERFACE "-Wl,-z,relro,-z,now")
endif()
if(STINT_SANITIZE)
  target_compile_options(stint_flags INTERFACE
    -fsanitize=${STINT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # A fixed address: what UBSan says of each check is 16 MiB of relocations otherwise.
  target_link_options(stint_flags INTERFACE -fsanitize=${STINT_SANITIZE}
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
target_compile_definitions(stint_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_include_directories(stint_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# Everything comes from Debian 12; scripts/packages.txt is the list that ./check installs.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# Needed by one subcommand each; the program says plainly what is missing without them.
pkg_check_modules(FREETYPE IMPORTED_TARGET freetype2)
pkg_check_modules(CURL IMPORTED_TARGET libcurl)
if(FREETYPE_FOUND)
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_FREETYPE=1)
endif()
pkg_check_modules(URING IMPORTED_TARGET liburing) # many reads of a file at once
pkg_check_modules(WEBP IMPORTED_TARGET libwebp) # images of that kind
if(WEBP_FOUND)
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_WEBP=1)
endif()
find_package(MPI COMPONENTS C)
if(CURL_FOUND)
  # Only the headers: the library is loaded when `stint data get` first needs it.
  target_include_directories(stint_flags SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_CURL=1)
endif()
# Likewise: linear programmes of `stint serve`, which plan without them less well.
find_path(GLPK_INCLUDE_DIR glpk.h)
if(GLPK_INCLUDE_DIR)
  target_include_directories(stint_flags SYSTEM INTERFACE ${GLPK_INCLUDE_DIR})
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_GLPK=1)
endif()
# Likewise: sounds and meshes that fields are fitted to.
find_path(SNDFILE_INCLUDE_DIR sndfile.h)
if(SNDFILE_INCLUDE_DIR)
  target_include_directories(stint_flags SYSTEM INTERFACE ${SNDFILE_INCLUDE_DIR})
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_SNDFILE=1)
endif()
find_path(ASSIMP_INCLUDE_DIR assimp/cimport.h)
if(ASSIMP_INCLUDE_DIR)
  target_include_directories(stint_flags SYSTEM INTERFACE ${ASSIMP_INCLUDE_DIR})
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_ASSIMP=1)
endif()
pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.75) # `stint serve`
if(MICROHTTPD_FOUND)
  target_include_directories(stint_flags SYSTEM INTERFACE ${MICROHTTPD_INCLUDE_DIRS})
  target_compile_definitions(stint_flags INTERFACE STINT_HAVE_MICROHTTPD=1)
endif()

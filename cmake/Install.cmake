# What `cmake --install` puts where: program, libraries, headers, pkg-config file, CMake
# package, man pages, completions. Man pages and completions are made by the program from
# its own tables.

include(CMakePackageConfigHelpers)

set(STINT_MAN_DIR ${PROJECT_BINARY_DIR}/man)
set(STINT_COMPLETION_DIR ${PROJECT_BINARY_DIR}/completion)

if(NOT CMAKE_CROSSCOMPILING AND NOT STINT_SANITIZE)
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/docs.stamp
    COMMAND stint help --man-pages ${STINT_MAN_DIR}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${STINT_COMPLETION_DIR}
    COMMAND sh -c "./stint completion bash >'${STINT_COMPLETION_DIR}/stint'"
    COMMAND sh -c "./stint completion zsh >'${STINT_COMPLETION_DIR}/_stint'"
    COMMAND sh -c "./stint completion fish >'${STINT_COMPLETION_DIR}/stint.fish'"
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/docs.stamp
    DEPENDS stint
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    COMMENT "Writing man pages and completions"
    VERBATIM)
  add_custom_target(stint_docs ALL DEPENDS ${PROJECT_BINARY_DIR}/docs.stamp)
endif()

install(TARGETS stint stint_static stint_shared
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(MPI_C_FOUND)
  install(TARGETS stint_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/stint ${PROJECT_BINARY_DIR}/include/stint
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${STINT_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${STINT_COMPLETION_DIR}/stint OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${STINT_COMPLETION_DIR}/_stint OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${STINT_COMPLETION_DIR}/stint.fish OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes
  DESTINATION ${CMAKE_INSTALL_DATADIR}/stint FILES_MATCHING PATTERN "*.ini")
# Links by the names of LIBSVM's programs, apart from those that a system may have.
file(RELATIVE_PATH STINT_FROM_LINKS ${CMAKE_INSTALL_FULL_LIBDIR}/stint/libsvm
  ${CMAKE_INSTALL_FULL_BINDIR}/stint)
foreach(name svm-train svm-predict svm-scale)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/libsvm)
  file(CREATE_LINK ${STINT_FROM_LINKS} ${PROJECT_BINARY_DIR}/libsvm/${name} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/libsvm/${name}
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/stint/libsvm)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What a link of libstint.a needs beside it. (As plain libraries: with Requires.private,
# `pkg-config --static` would ask for all that those libraries were themselves built from.)
set(STINT_PC_REQUIRES "jansson inih nettle libturbojpeg libpng zlib libarchive libutf8proc")
set(STINT_PC_LIBS "${JANSSON_LIBRARIES};${INIH_LIBRARIES};${NETTLE_LIBRARIES}")
list(APPEND STINT_PC_LIBS ${TURBOJPEG_LIBRARIES} ${PNG_LIBRARIES} ${ZLIB_LIBRARIES}
  ${ARCHIVE_LIBRARIES} ${UTF8PROC_LIBRARIES})
if(FREETYPE_FOUND)
  string(APPEND STINT_PC_REQUIRES " freetype2")
  list(APPEND STINT_PC_LIBS ${FREETYPE_LIBRARIES})
endif()
if(URING_FOUND)
  list(APPEND STINT_PC_LIBS ${URING_LIBRARIES})
endif()
if(WEBP_FOUND)
  string(APPEND STINT_PC_REQUIRES " libwebp")
  list(APPEND STINT_PC_LIBS ${WEBP_LIBRARIES})
endif()
list(TRANSFORM STINT_PC_LIBS PREPEND "-l")
string(REPLACE ";" " " STINT_PC_LIBS "${STINT_PC_LIBS} -lpthread -ldl -lm")

configure_file(${PROJECT_SOURCE_DIR}/cmake/stint.pc.in ${PROJECT_BINARY_DIR}/stint.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/stint.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(STINT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Stint)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/StintConfig.cmake.in
  ${PROJECT_BINARY_DIR}/StintConfig.cmake
  INSTALL_DESTINATION ${STINT_PACKAGE_DIR}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/StintConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/StintConfig.cmake
  ${PROJECT_BINARY_DIR}/StintConfigVersion.cmake DESTINATION ${STINT_PACKAGE_DIR})

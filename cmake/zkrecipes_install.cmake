# What is installed, by component: runtime (the shared library), dev (headers, static library, CMake and pkg-config
# files), tools (zklock with its manual page and completions), testing (the server in memory for unit tests), testenv (the
# library of real servers for tests, and zkenv), prometheus (metrics, alert rules, a dashboard).
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/zkrecipes")

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/zkrecipes"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT dev
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "testing.hpp" EXCLUDE)  # the component testing

# One export set per kind: a user of the shared library does not need the packages that only the static one needs.
foreach(kind shared static)
  if(TARGET zkrecipes_${kind})
    install(
      TARGETS zkrecipes_${kind}
      EXPORT zkrecipes-${kind}-targets
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
    install(
      EXPORT zkrecipes-${kind}-targets
      NAMESPACE zkrecipes::
      DESTINATION "${package_dir}"
      COMPONENT dev)
  endif()
endforeach()

set(ZKRECIPES_DEFAULT_KIND static)
if(BUILD_SHARED_LIBS)
  set(ZKRECIPES_DEFAULT_KIND shared)
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/zkrecipes-config.cmake.in" zkrecipes-config.cmake
                              INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(zkrecipes-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/zkrecipes-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/zkrecipes-config-version.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindZooKeeper.cmake"
  DESTINATION "${package_dir}"
  COMPONENT dev)

# pkg-config. What the static library needs goes to Libs.private, not to Requires.private: pkg-config insists on the
# .pc files of the latter even for the shared library, which needs none of them to link.
set(ZKRECIPES_PC_PRIVATE "")
get_filename_component(_zookeeper "${ZooKeeper_LIBRARY}" NAME)
string(REGEX REPLACE "^lib(.*)\\.(so|a)$" "-l\\1" _zookeeper "${_zookeeper}")
list(APPEND ZKRECIPES_PC_PRIVATE ${_zookeeper})
if(ZooKeeper_HASHTABLE_LIBRARY AND ZooKeeper_LIBRARY MATCHES "\\.a$")
  list(APPEND ZKRECIPES_PC_PRIVATE -lhashtable)
endif()
list(APPEND ZKRECIPES_PC_PRIVATE -lspdlog)
get_target_property(_definitions spdlog::spdlog INTERFACE_COMPILE_DEFINITIONS)
if("${_definitions}" MATCHES "SPDLOG_FMT_EXTERNAL")
  list(APPEND ZKRECIPES_PC_PRIVATE -lfmt)
endif()
list(APPEND ZKRECIPES_PC_PRIVATE -lboost_fiber -lboost_context -pthread ${CMAKE_DL_LIBS})
list(TRANSFORM ZKRECIPES_PC_PRIVATE REPLACE "^([a-z]+)$" "-l\\1")
list(JOIN ZKRECIPES_PC_PRIVATE " " ZKRECIPES_PC_PRIVATE)
foreach(dir LIBDIR INCLUDEDIR)
  set(ZKRECIPES_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(ZKRECIPES_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
set(ZKRECIPES_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")  # then the installed tree can be moved
  string(REGEX REPLACE "[^/]+" ".." _up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set(ZKRECIPES_PC_PREFIX "\${pcfiledir}/${_up}")
endif()
function(install_pc name component)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" ${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
          COMPONENT ${component})
endfunction()
install_pc(zkrecipes dev)

if(TARGET zkrecipes_testing AND ZKRECIPES_BUILD_TESTING)
  install(
    TARGETS zkrecipes_testing
    EXPORT zkrecipes-testing-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT testing)
  install(
    EXPORT zkrecipes-testing-targets
    NAMESPACE zkrecipes::
    DESTINATION "${package_dir}"
    COMPONENT testing)
  install(
    FILES "${PROJECT_SOURCE_DIR}/include/zkrecipes/testing.hpp"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/zkrecipes"
    COMPONENT testing)
  install_pc(zkrecipes-testing testing)
endif()

if(TARGET zkenv)
  install(TARGETS zkenv RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT testenv)
  install(
    FILES "${PROJECT_SOURCE_DIR}/man/zkenv.1"
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
    COMPONENT testenv)
endif()
if(TARGET zkrecipes_testenv)
  set_target_properties(zkrecipes_testenv PROPERTIES EXPORT_NAME testenv)
  install(
    TARGETS zkrecipes_testenv
    EXPORT zkrecipes-testenv-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT testenv
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT testenv)
  install(
    EXPORT zkrecipes-testenv-targets
    NAMESPACE zkrecipes::
    DESTINATION "${package_dir}"
    COMPONENT testenv)
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/testenv/include/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT testenv
    FILES_MATCHING
    PATTERN "*.hpp")
endif()

if(TARGET zkrecipes_prometheus)
  install(
    TARGETS zkrecipes_prometheus
    EXPORT zkrecipes-prometheus-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT prometheus)
  install(
    EXPORT zkrecipes-prometheus-targets
    NAMESPACE zkrecipes::
    DESTINATION "${package_dir}"
    COMPONENT prometheus)
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/monitoring/include/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT prometheus
    FILES_MATCHING
    PATTERN "*.hpp")
  install(
    FILES "${PROJECT_SOURCE_DIR}/monitoring/zkrecipes.rules.yml" "${PROJECT_SOURCE_DIR}/monitoring/zkrecipes-dashboard.json"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zkrecipes"
    COMPONENT prometheus)
  install_pc(zkrecipes-prometheus prometheus)
endif()

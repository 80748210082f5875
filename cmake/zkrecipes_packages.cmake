# The Debian packages that `cpack -G DEB` makes; scripts/deb builds and tries them. Each is a group of the components of
# zkrecipes_install.cmake.
#
#   libzkrecipes0.2           the shared library; the name follows the soname
#   libzkrecipes-dev          headers, static library, CMake and pkg-config files; zkrecipes::prometheus
#   libzkrecipes-testing-dev  the server in memory and the real servers for users' tests, with zkenv
#   zklock                    the shell tool; needs none of the other three
set(ZKRECIPES_PACKAGE_CONTACT "zkrecipes maintainers <maintainers@zkrecipes.example>"
    CACHE STRING "The maintainer whom the Debian packages name")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME zkrecipes)
set(CPACK_PACKAGE_VENDOR zkrecipes)
set(CPACK_PACKAGE_CONTACT "${ZKRECIPES_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/debian/finish.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# The packages of one release do not fit another. Debian sid has no number.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release _debian REGEX "^(ID=debian|VERSION_ID=\"[0-9]+\")$")
  if(_debian MATCHES "ID=debian" AND _debian MATCHES "VERSION_ID=\"([0-9]+)\"")
    string(APPEND CPACK_DEBIAN_PACKAGE_RELEASE "~deb${CMAKE_MATCH_1}")
  endif()
endif()
set(CPACK_ZKRECIPES_STRIP "${CMAKE_STRIP}")  # for finish.cmake
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # CPack would put it before what each package says of itself
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# zkrecipes_package(GROUP NAME SECTION SUMMARY one line TEXT what follows it [DEPENDS …] [RECOMMENDS …] [SUGGESTS …])
macro(zkrecipes_package group name section)
  cmake_parse_arguments(ARG "" "SUMMARY;TEXT;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${group} _group)
  set(CPACK_DEBIAN_${_group}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${_group}_PACKAGE_SECTION ${section})
  foreach(field DEPENDS RECOMMENDS SUGGESTS)
    set(CPACK_DEBIAN_${_group}_PACKAGE_${field} "${ARG_${field}}")
  endforeach()
  set(CPACK_DEBIAN_${_group}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_TEXT}")
endmacro()

set(_same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(_runtime "libzkrecipes${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
zkrecipes_package(
  library ${_runtime} libs
  SUMMARY "distributed locks on ZooKeeper for C++ (shared library)"
  TEXT "Locks, semaphores and leader elections on Apache ZooKeeper for C++20 programs.\n\
A client learns that it has lost a lock before another client can get it.\n\
Java programs that use Apache Curator can use the same locks.")
# Which package a program needs that was linked with the library; and the cache of ldconfig. cpack would make these too, but
# with a maintainer script where Debian has a trigger.
set(_control "${CMAKE_CURRENT_BINARY_DIR}/debian")
file(WRITE "${_control}/shlibs"
     "libzkrecipes ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${_runtime} (>= ${PROJECT_VERSION})\n")
file(WRITE "${_control}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${_control}/shlibs;${_control}/triggers")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_STRICT_PERMISSION ON)
zkrecipes_package(
  development libzkrecipes-dev libdevel
  SUMMARY "distributed locks on ZooKeeper for C++ (development files)"
  TEXT "Headers, static library, CMake and pkg-config files of zkrecipes, which has\n\
locks, semaphores and leader elections on Apache ZooKeeper for C++20 programs."
  DEPENDS "${_runtime} ${_same}"
  RECOMMENDS "libzookeeper-st-dev, libspdlog-dev, libboost-fiber1.81-dev | libboost-fiber-dev (>= 1.81)"
  SUGGESTS "prometheus-cpp-dev, pkg-config, cmake")
zkrecipes_package(
  test_support libzkrecipes-testing-dev libdevel
  SUMMARY "distributed locks on ZooKeeper for C++ (support for tests)"
  TEXT "A ZooKeeper server in memory for the unit tests of programs that use\n\
zkrecipes, and a library that starts real ZooKeeper servers for integration\n\
tests. The tool zkenv starts such servers from the shell."
  DEPENDS "libzkrecipes-dev ${_same}"
  RECOMMENDS "default-jre-headless, libzookeeper-java")
zkrecipes_package(
  tool zklock utils
  SUMMARY "run a command while it holds a lock in ZooKeeper"
  TEXT "Of all commands that run under the same lock, on any machine, at most one runs\n\
at a time. If the lock is lost, zklock stops the command before another machine\n\
can get the lock. Semaphores, shared locks and leader elections, too."
  SUGGESTS "zookeeperd, bash-completion")

include(CPack)
set(_components_of_library runtime)
set(_components_of_development dev prometheus)
set(_components_of_test_support testing testenv)
set(_components_of_tool tools)
foreach(_group library development test_support tool)
  cpack_add_component_group(${_group})
  foreach(_component IN LISTS _components_of_${_group})
    cpack_add_component(${_component} GROUP ${_group})
  endforeach()
endforeach()

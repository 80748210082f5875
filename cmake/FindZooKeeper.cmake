# Finds the single-threaded ZooKeeper C client. Neither Debian nor upstream ships a package file for it.
#
#   ZooKeeper::zookeeper   the library
#   ZooKeeper::archive     the static one beside a shared one, if it is there
#
# Looks for zookeeper_st (autotools, Debian) and zookeeper (upstream CMake, which builds the threaded one under this name
# unless it is told -DWANT_SYNCAPI=OFF).
if(ZooKeeper_LIBRARY MATCHES "zookeeper_mt") # a build tree that was configured for an older zkrecipes
  unset(ZooKeeper_LIBRARY CACHE)
endif()
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY NAMES zookeeper_st zookeeper)
find_library(ZooKeeper_HASHTABLE_LIBRARY NAMES hashtable)  # beside a static upstream build only
if(NOT ZooKeeper_HASHTABLE_LIBRARY)
  set(ZooKeeper_HASHTABLE_LIBRARY "")
endif()
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY ZooKeeper_HASHTABLE_LIBRARY)

if(ZooKeeper_INCLUDE_DIR AND EXISTS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h")
  file(STRINGS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h" _zk_version REGEX "ZOO_VERSION \"")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ZooKeeper_VERSION "${_zk_version}")
endif()

set(_zk_remedy "install the single-threaded ZooKeeper C client (on Debian: apt-get install libzookeeper-st-dev)")
if(ZooKeeper_LIBRARY)
  file(STRINGS "${ZooKeeper_LIBRARY}" _zk_threaded REGEX "pthread_create" LIMIT_COUNT 1)
  if(_zk_threaded)
    set(_zk_remedy "${ZooKeeper_LIBRARY} is the threaded ZooKeeper C client: build it with -DWANT_SYNCAPI=OFF, or ${_zk_remedy}")
    set(ZooKeeper_LIBRARY ZooKeeper_LIBRARY-NOTFOUND)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ZooKeeper
  REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR
  VERSION_VAR ZooKeeper_VERSION
  REASON_FAILURE_MESSAGE "${_zk_remedy}")

function(_zk_add_library name file)
  add_library(${name} UNKNOWN IMPORTED)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${file}"
                                           INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}"
                                           INTERFACE_LINK_LIBRARIES Threads::Threads)
  if(NOT file MATCHES "\\.a$")
    return()
  endif()
  # What a static one needs, which depends on how it was built.
  file(STRINGS "${file}" tls REGEX "SSL_connect" LIMIT_COUNT 1)
  file(STRINGS "${file}" sasl REGEX "sasl_client_new" LIMIT_COUNT 1)
  set(needs ${ZooKeeper_HASHTABLE_LIBRARY} $<$<BOOL:${tls}>:ssl> $<$<BOOL:${tls}>:crypto> $<$<BOOL:${sasl}>:sasl2>)
  set_property(TARGET ${name} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${needs})
endfunction()

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::zookeeper)
  find_package(Threads REQUIRED)
  _zk_add_library(ZooKeeper::zookeeper "${ZooKeeper_LIBRARY}")
  string(REGEX REPLACE "\\.so$" ".a" _zk_archive "${ZooKeeper_LIBRARY}")
  if(EXISTS "${_zk_archive}" AND NOT _zk_archive STREQUAL ZooKeeper_LIBRARY)
    _zk_add_library(ZooKeeper::archive "${_zk_archive}")
  endif()
endif()

# Finds the multi-threaded ZooKeeper C client. Neither Debian nor upstream ships a package file for it.
#
#   ZooKeeper::zookeeper   the library, with THREADED defined
#
# Looks for zookeeper_mt (autotools, Debian) and zookeeper (upstream CMake, which builds only the threaded one).
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY NAMES zookeeper_mt zookeeper)
find_library(ZooKeeper_HASHTABLE_LIBRARY NAMES hashtable)  # beside a static upstream build only
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY ZooKeeper_HASHTABLE_LIBRARY)

if(ZooKeeper_INCLUDE_DIR AND EXISTS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h")
  file(STRINGS "${ZooKeeper_INCLUDE_DIR}/zookeeper/zookeeper_version.h" _zk_version REGEX "ZOO_VERSION \"")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ZooKeeper_VERSION "${_zk_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ZooKeeper
  REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR
  VERSION_VAR ZooKeeper_VERSION
  REASON_FAILURE_MESSAGE "install the ZooKeeper C client (on Debian: apt-get install libzookeeper-mt-dev)")

if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::zookeeper)
  find_package(Threads REQUIRED)
  add_library(ZooKeeper::zookeeper UNKNOWN IMPORTED)
  set_target_properties(
    ZooKeeper::zookeeper
    PROPERTIES IMPORTED_LOCATION "${ZooKeeper_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}"
               INTERFACE_COMPILE_DEFINITIONS THREADED INTERFACE_LINK_LIBRARIES Threads::Threads)
  if(ZooKeeper_HASHTABLE_LIBRARY AND ZooKeeper_LIBRARY MATCHES "\\.a$")
    set_property(TARGET ZooKeeper::zookeeper APPEND PROPERTY INTERFACE_LINK_LIBRARIES "${ZooKeeper_HASHTABLE_LIBRARY}")
  endif()
  if(ZooKeeper_LIBRARY MATCHES "\\.a$")
    # What a static C client needs that was built with TLS or SASL.
    file(STRINGS "${ZooKeeper_LIBRARY}" _zk_tls REGEX "SSL_connect" LIMIT_COUNT 1)
    file(STRINGS "${ZooKeeper_LIBRARY}" _zk_sasl REGEX "sasl_client_new" LIMIT_COUNT 1)
    if(_zk_tls)
      set_property(TARGET ZooKeeper::zookeeper APPEND PROPERTY INTERFACE_LINK_LIBRARIES ssl crypto)
    endif()
    if(_zk_sasl)
      set_property(TARGET ZooKeeper::zookeeper APPEND PROPERTY INTERFACE_LINK_LIBRARIES sasl2)
    endif()
  endif()
endif()

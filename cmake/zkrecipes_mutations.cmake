# Where the library is compiled from: the sources as they are or, with ZKRECIPES_MUTATIONS, a copy that has all
# deliberate bugs in it (tests/mutations/bugs.py), or in their place random ones (tests/mutations/places.py).
set(ZKRECIPES_RANDOM_MUTATIONS "" CACHE FILEPATH "The random bugs; written by tests/mutations/hunt.py")
set(ZKRECIPES_SOURCES "${PROJECT_SOURCE_DIR}")
if(ZKRECIPES_MUTATIONS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(ZKRECIPES_SOURCES "${PROJECT_BINARY_DIR}/mutated")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/mutations/mutations.py" generate
                          "${PROJECT_SOURCE_DIR}" "${ZKRECIPES_SOURCES}" ${ZKRECIPES_RANDOM_MUTATIONS}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*" "${PROJECT_SOURCE_DIR}/recipes/*"
       "${PROJECT_SOURCE_DIR}/tests/mutations/*")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_sources}")
  # The edited files include mutations/switches.hpp.
  target_include_directories(zkrecipes_build_flags INTERFACE "${PROJECT_SOURCE_DIR}/tests")
  # Part of every test program.
  add_library(zkrecipes_mutations_listener OBJECT "${PROJECT_SOURCE_DIR}/tests/mutations/listener.cpp")
  target_link_libraries(zkrecipes_mutations_listener PRIVATE zkrecipes_build_flags GTest::gtest)
endif()

zkrecipes_test(
  multi_lock_server_test
  TIER server
  SOURCES multi_lock_contract_test.cpp
          multi_lock_counts_test.cpp
          multi_lock_crowd.cpp
          multi_lock_crowd_test.cpp
          multi_lock_faults_test.cpp
          multi_lock_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

# The crowd of multi_lock_crowd_test.cpp, as large as one likes.
add_executable(multi_lock_crowd multi_lock_crowd.cpp multi_lock_crowd_main.cpp)
target_include_directories(multi_lock_crowd PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(multi_lock_crowd PRIVATE zkrecipes_build_flags zkrecipes_internals zkrecipes::testenv)

zkrecipes_test(
  testenv_server_test
  TIER server
  TIMEOUT 900
  SOURCES testenv_cleanup_test.cpp testenv_gate_test.cpp testenv_server_test.cpp testenv_zkenv_test.cpp
  LINK zkrecipes_test_support)
add_executable(testenv_victim testenv_victim.cpp)
target_include_directories(testenv_victim PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(testenv_victim PRIVATE zkrecipes_build_flags zkrecipes::testenv)
target_compile_definitions(testenv_server_test PRIVATE "ZKRECIPES_TESTENV_VICTIM=\"$<TARGET_FILE:testenv_victim>\""
                                                       "ZKRECIPES_ZKENV=\"$<TARGET_FILE:zkenv>\"")
add_dependencies(testenv_server_test testenv_victim zkenv)

zkrecipes_test(testenv_ensemble_test TIER server TIMEOUT 900 SOURCES testenv_ensemble_test.cpp LINK zkrecipes_test_support)
set_tests_properties(testenv_ensemble_test PROPERTIES PROCESSORS 2)

zkrecipes_test(
  semaphore_server_test
  TIER server
  SOURCES semaphore_contract_test.cpp semaphore_counts_test.cpp semaphore_faults_test.cpp semaphore_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

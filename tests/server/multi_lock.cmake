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

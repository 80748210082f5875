zkrecipes_test(exclusive_mutex_server_test TIER server SOURCES exclusive_mutex_contract_test.cpp exclusive_mutex_counts_test.cpp exclusive_mutex_crowd_test.cpp exclusive_mutex_faults_test.cpp exclusive_mutex_local_test.cpp exclusive_mutex_test.cpp LINK zkrecipes_test_support
                   zkrecipes_internals)

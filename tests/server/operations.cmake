# What goes around the locks: by key, found, asked back.
zkrecipes_test(
  operations_server_test
  TIER server
  SOURCES find_locks_test.cpp lock_delay_test.cpp lock_registry_test.cpp max_hold_test.cpp missing_right_test.cpp revocation_test.cpp sequencer_test.cpp transaction_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

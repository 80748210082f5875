zkrecipes_test(
  read_write_lock_server_test
  TIER server
  SOURCES read_write_lock_contract_test.cpp read_write_lock_downgrade_test.cpp read_write_lock_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

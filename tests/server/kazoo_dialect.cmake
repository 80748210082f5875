zkrecipes_test(
  kazoo_dialect_server_test
  TIER server
  SOURCES kazoo_dialect_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

# Values that many share: numbers, and data that are followed.
zkrecipes_test(
  values_server_test
  TIER server
  SOURCES atomic_counter_test.cpp shared_value_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

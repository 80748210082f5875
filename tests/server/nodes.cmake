# Nodes that are kept there, groups of them, barriers.
zkrecipes_test(
  nodes_server_test
  TIER server
  SOURCES barrier_test.cpp group_member_test.cpp persistent_node_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

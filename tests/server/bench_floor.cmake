zkrecipes_test(
  bench_floor_server_test
  TIER server
  SOURCES bench_floor_test.cpp ../../bench/floor.cpp ../../bench/floors/client_lock.cpp ../../bench/floors/loop.cpp
          ../../bench/requests.cpp
  LINK zkrecipes_test_support ZooKeeper::zookeeper)

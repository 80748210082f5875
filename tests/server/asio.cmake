#zkrecipes / asio.hpp.
zkrecipes_test(asio_server_test TIER server SOURCES asio_test.cpp asio_echo_test.cpp asio_loop_end_test.cpp
                   asio_owner_test.cpp LINK zkrecipes_test_support zkrecipes_internals Boost::headers)

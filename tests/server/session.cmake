zkrecipes_test(session_server_test TIER server SOURCES session_test.cpp LINK zkrecipes_test_support zkrecipes_internals)
zkrecipes_test(session_crowd_server_test TIER server SOURCES session_crowd_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)

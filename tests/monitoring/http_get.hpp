#pragma once

#include <string>

#include <zkrecipes/testenv/endpoint.hpp>

namespace zkrecipes::test {

struct HttpAnswer {
    int status = 0;  ///< 0: no answer
    std::string content_type;
    std::string body;
};

/// GET of a path with its query, as it is. Waits for the whole answer, at most kMaxWait.
HttpAnswer http_get(const testenv::Endpoint& server, const std::string& path);

/// The text as part of a query: everything but letters and digits is escaped.
std::string url_escaped(const std::string& text);

}  // namespace zkrecipes::test

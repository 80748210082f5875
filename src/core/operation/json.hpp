#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zkrecipes::internal {

/// Appends `text` as a JSON string. What is not UTF-8 becomes U+FFFD.
void append_json(std::string& out, std::string_view text);

/// Reads the little JSON that stands in lock nodes. Whatever the input is, it ends, and no answer is longer than the
/// input. Every function leaves the reader behind what it has read, or answers false at the first thing that is not
/// JSON.
class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    /// An object: `member` is called for each key and must read or skip its value.
    bool object(const std::function<bool(const std::string& key)>& member);
    bool string_or_skip(std::string& into);
    bool integer_or_skip(std::int64_t& into);
    bool skip();

    bool at(char c);  // the next thing begins with `c`
    bool at_end();    // nothing follows but white space

private:
    bool take(char c);
    bool string(std::string& into);
    bool escape(std::string& into);
    bool hex4(std::uint32_t& value);
    bool skip_number();
    void blanks();

    static constexpr int kMaxDepth = 16;
    std::string_view text_;
    std::size_t pos_ = 0;
    int depth_ = 0;
};

}  // namespace zkrecipes::internal

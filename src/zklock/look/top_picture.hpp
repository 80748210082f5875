#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/read_node.hpp>

#include "zklock/look/lock_table.hpp"

namespace zkrecipes::zklock {

/// One picture of `zklock top`.
struct TopPicture {
    std::string prefix;
    std::vector<LockRow> rows;  ///< those that are shown
    std::size_t locks = 0;      ///< how many there are
    std::size_t held = 0;       ///< how many of them have a holder
    std::size_t waiters = 0;    ///< of all locks
    Nanoseconds oldest_look{0};
    std::vector<std::string> unreadable;
    std::string incomplete;  ///< about `unreadable`, for people; empty: all could be read
    std::string trouble;     ///< why the picture may be old; empty: no reason
    /// What is known of the holders, by the paths of their nodes.
    std::map<std::string, std::optional<Participant>> holders;
};

/// The totals of all rows; keeps the first `most` rows.
TopPicture picture_of_rows(std::vector<LockRow> rows, std::size_t most);
/// The owner of a lock node, as its data describe it.
Participant owner_of(const NodeContent& node);
/// That of a node which an access list forbids to read.
Participant unreadable_owner(const std::string& node);

/// For people. Each line has at most `columns` columns; 0: any number.
std::string in_words(const TopPicture& picture, std::size_t columns);
/// One line of JSON.
std::string in_json(const TopPicture& picture);
/// How many lines in_words() has at most besides the rows.
inline constexpr std::size_t kTopLines = 4;

}  // namespace zkrecipes::zklock

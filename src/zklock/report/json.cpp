#include "zklock/report/json.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {

std::string dump(const boost::json::object& object) { return printable_json(boost::json::serialize(object)); }

void merge(boost::json::object& object, const boost::json::object& more) {
    for (const auto& member : more) object.insert_or_assign(member.key(), member.value());
}

}  // namespace zkrecipes::zklock

#include "zklock/look/config_command.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

struct Row {
    std::string key;
    std::optional<std::string> value;  // empty: not set
    std::optional<Found> found;        // empty: the default
};

std::optional<std::string> default_of(const std::string& key) {
    const Options defaults;
    if (key == "session-timeout") return format_duration(defaults.session_timeout);
    if (key == "connect-timeout") return format_duration(*defaults.connect_timeout);
    if (key == "acl") return "open";
    return std::nullopt;
}

/// The value as it may be shown.
std::string shown(const std::string& key, const std::string& value) {
    const auto kind = kind_of_setting(key);
    if (!kind) return "(not shown)";
    switch (*kind) {
        case SettingKind::text: return value;
        case SettingKind::file: return absolute_file(value);
        case SettingKind::access_list: return acl_without_secrets(value);
    }
    return "(not shown)";
}

std::vector<Row> rows_of(const Settings& settings) {
    std::vector<Row> rows;
    for (const Setting& setting : kSettings) {
        Row row{setting.key, default_of(setting.key), settings.find(setting.key)};
        if (row.found) row.value = shown(row.key, row.found->value);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string place_of(const Row& row) {
    if (!row.found) return row.value ? "default" : "";
    if (row.found->line > 0) return at_line(absolute_file(row.found->file), row.found->line);
    const std::string& origin = row.found->origin;
    return origin.starts_with(kSettingsVariable) ? std::string(kSettingsVariable) + ", of an outer zklock" : origin;
}

std::string in_words(const std::vector<Row>& rows, const Settings& settings) {
    constexpr std::size_t kWidest = 80;  // an access list may be longer than any line
    std::size_t keys = 0, width = 0;
    const auto value_of = [](const Row& row) {
        if (!row.value) return std::string("(not set)");
        return row.value->empty() ? std::string("(empty)") : printable(*row.value);
    };
    for (const Row& row : rows) {
        keys = std::max(keys, row.key.size());
        width = std::max(width, std::min(value_of(row).size(), kWidest));
    }
    std::string text;
    for (const Row& row : rows) {
        std::string line = row.key + std::string(keys + 2 - row.key.size(), ' ') + value_of(row);
        if (const std::string place = place_of(row); !place.empty()) {
            const std::size_t column = keys + 2 + width + 2;
            line += std::string(line.size() < column ? column - line.size() : 2, ' ') + printable(place);
        }
        text += line + "\n";
    }
    text += "\nConfiguration files, in order of precedence:\n";
    for (const Settings::File& file : settings.files()) {
        text += "  " + printable(absolute_file(file.path)) + (file.read ? "" : " (missing)") + "\n";
    }
    return text;
}

boost::json::object row_json(const Row& row) {
    boost::json::object object = {{"value", nullptr}, {"source", row.found ? "environment" : "default"}};
    if (row.value) object["value"] = *row.value;
    if (!row.found) return object;
    if (row.found->line > 0) {
        object["source"] = "file";
        object["file"] = absolute_file(row.found->file);
        object["line"] = row.found->line;
    } else if (row.found->exit_code == kUsage) {
        object["source"] = "option";
        object["option"] = row.found->origin;
    } else {
        object["variable"] = row.found->origin.substr(0, row.found->origin.find(':'));
    }
    return object;
}

std::string in_json(const std::vector<Row>& rows, const Settings& settings) {
    boost::json::object values;
    for (const Row& row : rows) values[row.key] = row_json(row);
    boost::json::array files;
    for (const Settings::File& file : settings.files()) {
        files.push_back(boost::json::object{{"path", absolute_file(file.path)}, {"read", file.read}});
    }
    return dump({{"v", 1}, {"settings", std::move(values)}, {"files", std::move(files)}}) + "\n";
}

}  // namespace

int config_command(const Options& options) {
    const Settings settings(options.given_settings);
    const std::vector<Row> rows = rows_of(settings);
    print(options.json ? in_json(rows, settings) : in_words(rows, settings));
    Options checked = options;
    read_connection(settings, checked);  // says what is wrong
    return kOk;
}

}  // namespace zkrecipes::zklock

// Sends one request to the leader of the key-value service.
//
//     key_value_client ADDRESS,ADDRESS… get KEY | peek KEY | put KEY VALUE | add KEY [AMOUNT]
//
// Exit code 0: done, the value on standard output. 1: there is no such key. 69: no answer for a minute; a
// write may have happened or not. 65: refused.
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "client.hpp"

namespace {

constexpr std::chrono::minutes kPatience{1};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> out;
    std::istringstream in(list);
    for (std::string part; std::getline(in, part, ',');) out.push_back(part);
    return out;
}

int run(key_value::Client& client, const std::vector<std::string>& words) {
    const std::string& verb = words[0];
    const std::string& key = words[1];
    std::optional<std::string> value;
    if (verb == "get") {
        value = client.get(key, kPatience);
    } else if (verb == "peek") {
        value = client.peek(key, kPatience);
    } else if (verb == "put" && words.size() > 2) {
        client.put(key, words[2], kPatience);
        value = words[2];
    } else if (verb == "add") {
        value = std::to_string(client.add(key, words.size() > 2 ? std::stoll(words[2]) : 1, kPatience));
    } else {
        throw key_value::Refused("no such command");
    }
    if (value) std::printf("%s\n", value->c_str());
    client.leave(kPatience);
    return value ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s ADDRESS,... get KEY | peek KEY | put KEY VALUE | add KEY [AMOUNT]\n", argv[0]);
        return 64;
    }
    try {
        key_value::Client client(split(argv[1]));
        return run(client, {argv + 2, argv + argc});
    } catch (const key_value::Refused& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 65;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 69;
    }
}

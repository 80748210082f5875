#include "session/requests/directories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;

/// Runs a maker against a set of nodes.
struct Tree {
    std::set<std::string> nodes{"/"};
    std::set<std::string> forbidden;  // parents in which we may not create
    std::vector<std::string> asked;
    std::function<void()> before_each;

    static std::string parent(const std::string& path) {
        const auto slash = path.rfind('/');
        return slash == 0 ? "/" : path.substr(0, slash);
    }
    Rc make(const std::string& path) {
        DirectoryMaker maker(path);
        auto step = maker.start();
        while (!std::holds_alternative<Rc>(step)) {
            if (before_each) before_each();
            if (const auto* create = std::get_if<DirectoryMaker::Create>(&step)) {
                asked.push_back(create->path);
                step = maker.on_created(this->create(create->path));
            } else {
                const auto& where = std::get<DirectoryMaker::Exists>(step).path;
                asked.push_back("?" + where);
                step = maker.on_exists(nodes.contains(where) ? Rc::ok : Rc::no_node);
            }
        }
        return std::get<Rc>(step);
    }
    Rc create(const std::string& path) {
        if (!nodes.contains(parent(path))) return Rc::no_node;
        if (forbidden.contains(parent(path))) return Rc::no_auth;
        return nodes.insert(path).second ? Rc::ok : Rc::node_exists;
    }
};

TEST(DirectoryMakerTest, AnExistingParentCostsOneRequest) {
    Tree tree;
    tree.nodes.insert("/a");
    EXPECT_EQ(tree.make("/a/b"), Rc::ok);
    EXPECT_THAT(tree.asked, ElementsAre("/a/b"));
}

TEST(DirectoryMakerTest, MissingAncestorsAreMadeFromTheFirstOneThatIsThere) {
    Tree tree;
    EXPECT_EQ(tree.make("/a/b/c"), Rc::ok);
    EXPECT_THAT(tree.asked, ElementsAre("/a/b/c", "/a/b", "/a", "/a/b", "/a/b/c"));
    EXPECT_TRUE(tree.nodes.contains("/a/b/c"));
}

TEST(DirectoryMakerTest, SomebodyElseMayMakeThemAtTheSameTime) {
    Tree tree;
    tree.nodes = {"/", "/a", "/a/b"};
    EXPECT_EQ(tree.make("/a/b"), Rc::ok);
}

TEST(DirectoryMakerTest, AnAncestorThatIsReapedInBetweenIsMadeAgain) {
    Tree tree;
    int count = 0;
    tree.before_each = [&] {
        if (++count == 4) tree.nodes = {"/"};
    };
    EXPECT_EQ(tree.make("/a/b/c"), Rc::ok);
    EXPECT_TRUE(tree.nodes.contains("/a/b/c"));
}

TEST(DirectoryMakerTest, AnAncestorThatIsReapedForEverEndsTheTry) {
    Tree tree;
    tree.before_each = [&] { tree.nodes = {"/"}; };
    EXPECT_EQ(tree.make("/a/b"), Rc::no_node);
    EXPECT_LT(tree.asked.size(), 100u);
}

TEST(DirectoryMakerTest, AnAncestorThatOthersMakeAndReapForEverEndsTheTry) {
    for (const char* const path : {"/a/b", "/a/b/c"}) {  // so that either answer is the last one
        DirectoryMaker maker(path);
        auto step = maker.start();
        while (const auto* create = std::get_if<DirectoryMaker::Create>(&step)) {
            step = maker.on_created(create->path == "/a" ? Rc::node_exists : Rc::no_node);
        }
        EXPECT_EQ(std::get<Rc>(step), Rc::no_node) << path;
    }
}

TEST(DirectoryMakerTest, AForbiddenCreateOfWhatExistsIsFine) {
    Tree tree;
    tree.nodes.insert("/a");
    tree.forbidden.insert("/");
    EXPECT_EQ(tree.make("/a"), Rc::ok);
    EXPECT_EQ(tree.make("/b"), Rc::no_auth);
}

TEST(DirectoryMakerTest, TheRootIsAlwaysThere) {
    Tree tree;
    EXPECT_EQ(tree.make("/"), Rc::ok);
    EXPECT_TRUE(tree.asked.empty());
}

TEST(DirectoryMakerTest, AnyOtherAnswerEndsTheTry) {
    DirectoryMaker maker("/a/b");
    maker.start();
    EXPECT_EQ(std::get<Rc>(maker.on_created(Rc::connection_loss)), Rc::connection_loss);
}

TEST(DirectoryMakerTest, AChrootThatIsMissingAtItsRootIsSaidToBeMissing) {
    DirectoryMaker maker("/a");
    maker.start();
    EXPECT_EQ(std::get<Rc>(maker.on_created(Rc::no_node)), Rc::no_node);
}

}  // namespace
}  // namespace zkrecipes::internal

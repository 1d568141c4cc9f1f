// Every member of a recipe is visited, under the manifest's word.
#include "worker/recipe_members.h"

#include <gmock/gmock.h>

#include "planning/vocabulary.h"

namespace peakbench::worker {
namespace {

using testing::ElementsAreArray;

// A new member of Recipe stops this from compiling: worker/recipe_members.h lacks it then.
TEST(RecipeMembers, AreAllVisited) {
  const Recipe recipe{};
  [[maybe_unused]] const auto& [base_weights, adapters, update_rule, kernel_grouping, schedule,
                                micro_batches, loss_head, step_runner, freezing, embedding_wrappers,
                                block_wrappers, saved_tensor_hooks, step_contexts, step_listeners,
                                loss_transforms, gradient_hooks, gradient_transforms,
                                update_rule_wrappers] = recipe;
  std::size_t visited = 0;
  const auto count = [&](const char*, auto) { ++visited; };
  for_each_slot(count);
  for_each_wrapper_list(count);
  EXPECT_EQ(visited + 1, 18U) << "and freezing";
}

TEST(RecipeMembers, HaveTheManifestsWords) {
  std::vector<std::string> slots, wrappers{"freezing"};
  for_each_slot([&](const char* word, auto) { slots.emplace_back(word); });
  for_each_wrapper_list([&](const char* word, auto) { wrappers.emplace_back(word); });
  EXPECT_THAT(slots, ElementsAreArray(planning::slots()));
  EXPECT_THAT(wrappers, ElementsAreArray(planning::wrappers()));
}

}  // namespace
}  // namespace peakbench::worker

// `peakbench publish`: a static site from the history.
#include <fmt/format.h>

#include <memory>

#include "cli/history_command.h"
#include "cli/history_text.h"
#include "reports/site/site.h"

namespace peakbench::cli {
namespace {

constexpr const char* kPublishFooter = R"(Examples:
  peakbench publish --out site
  peakbench publish --history nightly.sqlite --branch main --title "Our models" --out public
The site has an index, a page per trend (a case on a card), the list of runs, reports of the newest runs
and the latest comparison. Links are relative, and nothing is loaded from a network. The same history gives
the same bytes, and unchanged files are not written again. Only files that an earlier publish wrote are
replaced or removed. Damaged runs are left out and listed.
Exit codes: 0 done; 2 the history cannot be read, the folder cannot be written, or a template is wrong.)";

struct PublishArguments {
  HistoryPlace place;
  site::Options options;
};

int publish(World& world, PublishArguments& arguments) {
  arguments.options.builtin_template_directory = world.places.templates;
  const auto published = site::publish(arguments.place.to_read(), arguments.options);
  for (const auto& [number, why] : published.left_out) world.err << left_out_text(number, why);
  world.out << fmt::format("{}\n{} files written, {} as they were, {} removed\n", published.index,
                           published.written, published.unchanged, published.removed);
  return kDone;
}

}  // namespace

Command add_publish(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("publish", "Write a static site of the history");
  command->footer(kPublishFooter);
  const auto arguments = std::make_shared<PublishArguments>();
  auto& options = arguments->options;
  options.output_directory = "site";
  add_history_options(*command, arguments->place);
  command->add_option("-o,--out", options.output_directory, "Folder of the site")
      ->type_name("DIR")
      ->capture_default_str();
  command
      ->add_option("--branch", options.branch,
                   "Branch to show (default: main, else the newest run's)")
      ->type_name("NAME");
  command->add_option("--title", options.title, "Title of every page (default: Peakbench)")
      ->type_name("TEXT");
  command->add_option("--reports", options.reports, "Number of newest runs that get a report")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--templates", options.template_directory,
                   "Folder with templates that replace the bundled ones, file by file")
      ->type_name("DIR");
  return [&world, arguments] { return publish(world, *arguments); };
}

}  // namespace peakbench::cli

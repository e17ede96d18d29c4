#include "ui/plan_view.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"
#include "ui/terminal.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::ui {

namespace {

constexpr std::size_t k_widest_step = 60; ///< a longer step does not push the reasons of the other steps to the right
constexpr std::size_t k_max_diff_lines = 200; ///< of one file; --json has all lines
constexpr std::string_view k_diff_margin = "      ";

struct Mark {
  char sign;
  Colour colour;
};
constexpr Mark k_makes{'+', Colour::green};
constexpr Mark k_takes_away{'-', Colour::red};
constexpr Mark k_changes{'~', Colour::yellow};
constexpr Mark k_runs{'>', Colour::blue};

/// One overload for each action: a new action does not compile without one.
struct MarkOf {
  Mark operator()(const plan::File& action) const { return of(action.before, action.after); }
  Mark operator()(const plan::Directory& action) const { return of(action.before, action.after); }
  Mark operator()(const plan::Link& action) const { return of(action.before, action.after); }
  Mark operator()(const plan::Rename& /*action*/) const { return k_changes; }
  Mark operator()(const plan::ExchangeForLink& /*action*/) const { return k_changes; }
  Mark operator()(const plan::SetAccess& /*action*/) const { return k_changes; }
  Mark operator()(const plan::SetImmutable& /*action*/) const { return k_changes; }
  Mark operator()(const plan::Mount& /*action*/) const { return k_makes; }
  Mark operator()(const plan::Unmount& /*action*/) const { return k_takes_away; }
  Mark operator()(const plan::Remount& /*action*/) const { return k_changes; }
  Mark operator()(const plan::RemoveTree& /*action*/) const { return k_takes_away; }
  Mark operator()(const plan::SetTreeAccess& /*action*/) const { return k_changes; }
  Mark operator()(const plan::ChangeFiles& action) const {
    return std::ranges::all_of(action.changes, &plan::FileChange::removed) ? k_takes_away : k_changes;
  }
  Mark operator()(const plan::RunTool& /*action*/) const { return k_runs; }

 private:
  template <class Side> static Mark of(const Side& before, const Side& after) {
    return !before ? k_makes : !after ? k_takes_away : k_changes;
  }
};

/// A plan that has only bookkeeping steps prints them: the user asked for a note or a mark.
bool hides_bookkeeping(const plan::Plan& plan, bool all) {
  return !all && !std::ranges::all_of(plan.steps, &plan::Step::bookkeeping);
}

/// Returns the groups in the order in which they run: the unnamed group first (or last), the others in their order.
std::vector<std::string> groups_of(const plan::Plan& plan, bool hides) {
  std::vector<std::string> groups;
  for (const auto& step : plan.steps)
    if (!(hides && step.bookkeeping) && std::ranges::find(groups, step.group) == groups.end())
      groups.push_back(step.group);
  std::ranges::stable_partition(groups, [&plan](const auto& group) { return group.empty() != plan.unnamed_last; });
  return groups;
}

Colour colour_of_diff_line(std::string_view line) {
  if (line.starts_with("+++") || line.starts_with("---"))
    return Colour::dim;
  if (line.starts_with("@@"))
    return Colour::blue;
  if (line.starts_with('+'))
    return Colour::green;
  return line.starts_with('-') ? Colour::red : Colour::none;
}

std::string diff_text(const plan::Action& action, bool colour) {
  std::string out;
  const auto lines = split_lines(plan::diff(action));
  for (std::size_t i = 0; i < std::min(lines.size(), k_max_diff_lines); ++i) {
    // Tabs are common in the files of /etc and harmless; every other invisible character is escaped.
    const auto line = visible_lines(lines[i]);
    const auto paint = colour_of_diff_line(line);
    const bool on = colour && paint != Colour::none;
    out += fmt::format("{}{}{}{}\n", k_diff_margin, on ? sequence_of(paint) : "", line, on ? "\x1b[0m" : "");
  }
  if (lines.size() > k_max_diff_lines)
    out += fmt::format("{}... and {}\n", k_diff_margin, count_of(lines.size() - k_max_diff_lines, "more line"));
  return out;
}

struct StepText {
  const plan::Step* step = nullptr;
  std::string description;
};

std::string step_line(const StepText& text, std::size_t column, bool colour) {
  const auto mark = std::visit(MarkOf{}, text.step->action);
  std::string line =
      fmt::format("  {} {}", painted(mark.colour, std::string_view(&mark.sign, 1), colour), text.description);
  const bool final = !plan::invert(text.step->action);
  if (text.step->why.empty() && !final)
    return line + "\n";
  const auto width = display_width(text.description);
  line.append(width < column ? column - width + 2 : 2, ' ');
  line += visible(text.step->why);
  if (final)
    line += (text.step->why.empty() ? "" : " ") + painted(Colour::yellow, "(cannot be undone)", colour);
  return line + "\n";
}

} // namespace

std::string plan_text(const plan::Plan& plan, bool colour, bool all) {
  const bool hides = hides_bookkeeping(plan, all);
  std::string out;
  for (const auto& note : plan.notes)
    out += fmt::format("{}: {}\n", painted(Colour::blue, "note", colour), visible(note));

  std::vector<StepText> texts;
  std::size_t column = 0;
  for (const auto& step : plan.steps) {
    if (hides && step.bookkeeping)
      continue;
    texts.push_back({&step, visible(plan::describe(step.action))});
    const auto width = display_width(texts.back().description);
    if (width <= k_widest_step)
      column = std::max(column, width);
  }
  const auto groups = groups_of(plan, hides);
  const bool headings = groups.size() > 1 && std::ranges::any_of(groups, [&](const auto& group) {
                          return !group.empty() && std::ranges::count_if(texts, [&](const StepText& text) {
                                                     return text.step->group == group;
                                                   }) > 1;
                        });
  for (const auto& group : groups) {
    if (headings && !group.empty())
      out += painted(Colour::bold, group, colour) + "\n";
    for (const auto& text : texts)
      if (text.step->group == group)
        out += step_line(text, column, colour) +
               (all || !text.step->bookkeeping ? diff_text(text.step->action, colour) : "");
  }
  return out;
}

std::string summary_text(const plan::Plan& plan, const plan::Report& report, std::string_view undo, bool all) {
  using plan::Outcome;
  const bool hides = hides_bookkeeping(plan, all);
  const auto counted = [&](Outcome outcome) {
    return std::ranges::count_if(report.results, [&](const plan::StepResult& result) {
      const bool hidden = hides && result.step < plan.steps.size() && plan.steps[result.step].bookkeeping;
      return result.outcome == outcome && (!hidden || outcome == Outcome::failed);
    });
  };
  constexpr std::array<Outcome, 4> k_order{Outcome::done, Outcome::unchanged, Outcome::failed, Outcome::skipped};
  std::vector<std::string> parts;
  for (const auto outcome : k_order)
    if (const auto count = counted(outcome); count > 0)
      parts.push_back(fmt::format("{} {}", count, plan::to_string(outcome)));
  if (parts.empty())
    return "";
  std::string out = (report.interrupted ? "interrupted: " : "") + join(parts, ", ");
  if (!report.ok())
    out += "; run the command again to complete it";
  if (plan::can_be_undone(plan, report))
    out += fmt::format("{} undo with `{}`", report.ok() ? ";" : ", or", undo);
  return out;
}

} // namespace sharefs::ui

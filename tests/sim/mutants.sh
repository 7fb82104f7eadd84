#!/bin/sh
# Plants one error at a time into a copy of a source and runs the simulation on it: a mutant that no
# seed catches means that a checker doesn't bite.
#   mutants.sh SOURCE_DIR WORK_DIR CXX MAIN_OBJECT LIBRARIES…
set -eu
source_dir=$1 work_dir=$2 cxx=$3 main_object=$4
shift 4
rm -rf "$work_dir"
mkdir -p "$work_dir"
seeds=1-4000
survived=0
caught=0

# mutant NAME FILE SED_SCRIPT: the script must change the file.
mutant() {
  name=$1 file=$2 script=$3
  shift 3
  copy=$work_dir/$name.cpp
  sed -e "$script" "$source_dir/$file" > "$copy"
  if cmp -s "$copy" "$source_dir/$file"; then
    echo "$name: the patch does not fit $file any more" >&2
    exit 1
  fi
  "$cxx" -std=c++20 -O1 -w -I"$source_dir" -c "$copy" -o "$work_dir/$name.o"
  # Before the libraries, so that the linker takes the copy and leaves the original.
  "$cxx" "$main_object" "$work_dir/$name.o" "$@" -o "$work_dir/$name"
  if "$work_dir/$name" --seeds "$seeds" > "$work_dir/$name.log" 2>&1; then
    echo "SURVIVED $name"
    survived=$((survived + 1))
  else
    echo "caught   $name: $(grep -m 1 -e '^seed' -e 'broken invariant' "$work_dir/$name.log")"
    caught=$((caught + 1))
  fi
}

job=rendezvous/core/job.cpp
orders=rendezvous/core/job_orders.cpp
outcome=rendezvous/core/round_outcome.cpp
coordinator=rendezvous/core/coordinator.cpp
member=rendezvous/core/member.cpp
ranks=rendezvous/core/rank_assignment.cpp
agent=launcher/core/agent_orders.cpp
group=launcher/core/worker_group.cpp
losses=rendezvous/core/job_losses.cpp
deaths=launcher/core/deaths.cpp

mutant next_round_before_all_stopped $job \
  's/return entry.second.stopped || entry.second.lost;/return true;/' "$@"
mutant succeeded_counts_as_stopped $job \
  's/status.phase == NodePhase::stopped;/status.phase >= NodePhase::succeeded;/' "$@"
mutant silence_means_nothing $job 's/if (node.local) return std::nullopt;/return std::nullopt;/' "$@"
mutant no_grace_to_reconnect $job \
  's/\*node.disconnected_at + times_.reconnect_grace/*node.disconnected_at - times_.second_look/' "$@"
mutant no_second_look $job \
  's/} else if (!node.overdue_since) {/} else if (lost.push_back(id); true) {/' "$@"
mutant no_join_timeout $job 's/now < forming.since + times_.join ||/true ||/' "$@"
mutant closed_job_takes_newcomers $job 's/verdict_ \&\& known_.count(node.id) == 0/false/' "$@"
mutant verdict_without_acknowledgement $orders \
  's/if (closed() \&\& acknowledged)/if (true)/' "$@"
mutant no_pause_before_a_restart $job 's/now < \*forming.paused_until/false/' "$@"
mutant one_restart_too_many $outcome 's/budget.used >= budget.allowed/budget.used > budget.allowed/' "$@"
mutant loss_is_charged $outcome \
  's/return kind == \(FailureKind::\)worker_exited/return kind == \1node_lost || kind == \1worker_exited/' "$@"
mutant last_cause_decides $outcome \
  's/, a.happened) </, b.happened) </; s/, b.happened);/, a.happened);/' "$@"
mutant interruption_is_restarted $outcome \
  's/kind != FailureKind::node_lost/kind != FailureKind::node_lost \&\& kind != FailureKind::interrupted/' "$@"
mutant statuses_are_not_answered $coordinator 's/if (!answered \&\& /if (false \&\& /' "$@"
mutant old_session_is_kept $coordinator 's/^  detach(entry, hello.node.id, effects);//' "$@"
mutant heartbeats_stop $member \
  's/joined.next_heartbeat = now + terms_.heartbeat/joined.next_heartbeat = now + 100 * terms_.heartbeat/' "$@"
mutant ranks_overlap $ranks 's/seating.world_size += request->workers;/seating.world_size += 1;/' "$@"
mutant survivors_change_their_order $ranks \
  's/taken.emplace(\*request.previous_seat,/taken.emplace(100 - *request.previous_seat,/' "$@"
mutant consequences_decide $outcome 's/something_began_(std::any_of/something_began_(false \&\& std::any_of/' "$@"
mutant consequence_stays_first $deaths 's/(first_->failure.secondary \&\& !seen.secondary)/false/' "$@"
mutant consequence_stops_at_once $group 's/cause_known || !others_may_follow()/true/' "$@"
mutant loss_is_no_loss $group 's/return failure.kind == FailureKind::worker_signaled ||/return/' "$@"
mutant survivors_never_fail $group 's/!deaths_.first_cause() \&\&/true ||/' "$@"
mutant losses_are_not_told $orders 's/run.loss = loss->failure/(void)loss/' "$@"
mutant nobody_left_is_success $losses 's/member.lost || (member.succeeded/member.lost \&\& (member.succeeded/' "$@"
mutant agent_skips_a_stop $agent 's/next_ = NextRound{placement, true};//' "$@"

echo "$caught mutants caught, $survived survived"
test "$survived" -eq 0

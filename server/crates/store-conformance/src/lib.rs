//! The requirements on every store: one suite, which runs against each back end.
//!
//! A back end provides a [`Place`], and [`suite!`] makes a test of each case here.
//! [`concurrent_suite!`] makes tests of the cases in which several users share a store, which also
//! run over [`TwoHandles`]: two nodes share one database.
//!
//! | module | cases of |
//! |---|---|
//! | [`players`], [`sessions`], [`left_guests`] | guests and their names, sessions, and restoring a
//! guest |
//! | [`game_sessions`] | sessions of games on a site of their own |
//! | [`sign_ins`], [`merges`], [`suspensions`] | signing in to accounts, random histories of it,
//! and suspended players |
//! | [`devices`], [`deploy_tokens`], [`keys`] | the command line's sign-in; pipelines' secrets; signing keys |
//! | [`certificates`] | certificates of an ACME server, and limits on orders |
//! | [`projects`], [`deployments`], [`previews`], [`environments`], [`listings`], [`player_games`], [`test_players`] | games, their files, previews, settings and test players |
//! | [`people`], [`handovers`] | who may do what with a project, invitations, and offers of a project |
//! | [`domains`] | domains of projects' own |
//! | [`webhooks`], [`player_events`] | where alerts are sent, and what is told of deleted players |
//! | [`deletions`], [`retention`] | exporting and deleting players; old events and addresses |
//! | [`stored_files`] | files that several nodes share, and their removal |
//! | [`room`], [`takedown`] | the storage of deployments; games that are taken down |
//! | [`counting`], [`logs`], [`log_quota`] | players over time; frontend log records |
//! | [`audit`], [`administration`] | the log of security events; administrators |
//! | [`nodes`] | what changed for nodes, nodes themselves, and leases |
//! | [`durability`] | the data after the store was closed |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is a test"
)]
#![expect(missing_docs, reason = "a test's name is its sentence")]

pub mod administration;
pub mod audit;
pub mod certificates;
pub mod counting;
pub mod deletions;
pub mod deploy_tokens;
pub mod deployments;
pub mod devices;
pub mod domains;
pub mod durability;
pub mod environments;
mod fixtures;
pub mod game_sessions;
pub mod handovers;
pub mod keys;
pub mod left_guests;
pub mod listings;
pub mod log_quota;
pub mod logs;
pub mod merges;
pub mod nodes;
pub mod people;
mod place;
pub mod player_events;
pub mod player_games;
pub mod players;
pub mod previews;
pub mod projects;
pub mod retention;
pub mod room;
pub mod sessions;
pub mod sign_ins;
pub mod stored_files;
pub mod suspensions;
pub mod takedown;
pub mod test_players;
pub mod webhooks;

use self::fixtures::{
    NOW, assert_conflict, by, deployment, entropy, guest, key, lives, project, sign_in, state,
};
pub use self::place::{Handles, Needle, Place, TwoHandles};

/// Makes a test of every case. `$place` evaluates to the place.
#[macro_export]
macro_rules! suite {
    ($place:expr) => {
        $crate::cases! { $place;
            administration {
                an_act_on_what_lies_elsewhere_is_recorded_for_the_owner
                an_account_becomes_an_administrator_and_a_guest_does_not
                a_project_goes_to_an_account_alone
                events_say_who_did_it
                events_say_where_they_came_from
                events_are_gone_on_with_and_routine_ones_are_swept
                who_holds_a_session_is_known_until_it_ends
                players_are_found_by_what_their_names_look_like
                players_are_named_by_their_ids
                merged_guests_are_listed_with_their_account
                addresses_are_listed_with_the_guests_that_they_hold
                a_copy_is_a_whole_store_of_that_moment
            }
            audit {
                events_are_listed_newest_first_by_player
                who_goes_on_behind_events_while_others_write_misses_none
            }
            certificates {
                a_certificate_comes_back_as_it_was_and_a_later_one_takes_its_place
                an_order_keeps_others_waiting_until_it_ends
                what_another_server_has_obtained_since_is_not_ordered_again
                orders_are_limited_in_total_and_for_each_name
                orders_of_one_budget_leave_others_as_they_are
                failed_orders_wait_longer_and_a_certificate_forgets_them
                a_challenge_is_answered_until_it_ends
                an_account_is_created_once_and_replaced_knowingly
                of_many_orders_at_once_one_begins
            }
            counting {
                minutes_add_up_in_themselves_and_in_their_hour
                a_sketch_grows_and_is_found_by_its_period
                sketches_of_several_nodes_are_united
                the_ranking_that_is_set_is_listed_by_every_node
                those_who_played_long_enough_rank_their_games
                who_signs_in_while_playing_counts_once
                what_is_old_goes_in_batches_and_numbers_stay
                counts_of_an_unknown_project_change_nothing
            }
            deletions {
                who_asks_to_be_deleted_is_signed_out_and_can_take_it_back
                who_owns_a_project_is_not_deleted
                a_suspension_stops_a_deletion_unless_it_came_before
                a_guest_that_is_to_be_deleted_becomes_no_part_of_an_account
                a_player_who_is_deleted_leaves_nothing_behind
                everything_that_is_known_of_a_player_is_exported
            }
            deploy_tokens {
                a_deploy_token_comes_back_as_it_was_with_its_project
                valid_deploy_tokens_have_names_of_their_own_and_are_few
                a_revoked_deploy_token_is_found_as_revoked
                the_last_use_of_a_deploy_token_only_ever_grows
                deploy_tokens_end_with_their_projects_owner
                the_newest_ended_deploy_tokens_are_kept
                an_act_with_a_deploy_token_names_it
                of_many_deploy_tokens_at_once_no_more_are_added_than_may_be
            }
            deployments {
                a_deployment_comes_back_as_it_was
                an_inspection_is_set_once
                deployments_are_listed_newest_first_with_what_they_add_up_to
                an_earlier_deployment_of_the_same_environment_can_be_shown_again
                a_kept_file_is_one_whose_bytes_never_changed
                a_file_of_a_deployment_is_the_one_that_it_had
                a_deployment_is_described_without_its_files_and_some_are_found
                the_current_deployment_and_the_newest_are_not_swept
                files_that_no_deployment_has_are_found
            }
            devices {
                a_code_is_approved_once_and_redeemed_once
                of_many_questions_at_once_one_device_comes_to_be
                the_first_user_code_that_nobody_has_is_taken
                a_device_that_asks_too_often_is_slowed_down
                a_denied_code_stays_denied
                both_codes_expire_after_ten_minutes
                guests_and_suspended_accounts_let_no_device_in
                a_refresh_token_works_once_and_ends_its_device_when_it_comes_again
                a_lost_answer_can_be_asked_for_again
                a_token_that_was_replaced_ends_its_device
                of_many_refreshes_at_once_all_but_the_last_are_replaced
                a_suspended_account_gets_no_token_and_keeps_its_device
                any_token_of_a_device_revokes_it
                a_device_is_ended_by_its_player_alone
                ending_all_sessions_ends_all_devices
                a_device_ends_ninety_days_after_its_last_use
                a_device_ends_a_year_after_its_sign_in
                what_means_nothing_any_more_is_swept
            }
            domains {
                a_claimed_domain_comes_back_as_it_was
                a_domain_goes_to_the_first_project_that_proves_it
                what_was_found_of_an_earlier_claim_is_not_noted
                a_domain_that_fails_for_too_long_is_taken_off
                an_environment_has_at_most_one_canonical_domain
                a_project_has_few_domains_and_they_go_with_it
                of_many_projects_that_prove_a_domain_at_once_one_gets_it
            }
            durability {
                what_was_answered_is_there_after_a_drop_without_close
                closing_writes_out_what_is_queued_and_refuses_what_follows
            }
            environments {
                every_project_has_two_environments
                what_is_hosted_is_read_whole_or_of_one_project
                what_is_set_for_an_environment_is_its_alone
                settings_of_an_unknown_project_are_refused
                what_is_set_survives_a_drop
                what_is_set_again_unchanged_is_not_written
            }
            game_sessions {
                a_code_is_redeemed_once_by_its_game_and_its_browser
                a_code_to_sign_out_names_its_session_once
                a_games_session_ends_with_its_parent_or_alone
                a_games_session_follows_its_guest_into_an_account
                a_games_session_ends_when_its_guest_is_merged
                a_blank_session_has_its_guest_to_be_until_it_has_one
                a_session_has_a_bounded_number_of_sessions_of_one_game
                the_games_of_a_players_sessions_are_listed
                a_session_of_a_game_stays_whose_visitor_has_played_another_one
                a_blank_session_ends_when_its_browser_signs_in
                old_codes_and_sessions_of_games_are_swept
                of_many_who_redeem_a_code_at_once_one_does
            }
            handovers {
                a_project_is_handed_on_to_a_developer_who_accepts
                an_offer_ends_when_it_is_withdrawn_declined_or_late
                an_offer_ends_with_what_made_it_possible
                a_developer_who_leaves_while_accepting_owns_the_project_or_left
                who_lost_a_project_decides_nothing_about_it
                of_many_projects_accepted_at_once_no_more_are_than_may
            }
            keys {
                keys_come_back_as_they_were_in_the_order_of_adding
                a_key_after_a_stale_one_is_not_added
                of_many_keys_at_once_one_is_added
                removed_keys_are_forgotten
                a_revoked_key_goes_in_the_moment_in_which_its_successor_comes
                resealed_keys_keep_all_but_how_they_lie
                the_life_of_a_keys_tokens_only_ever_grows
                a_shared_secret_is_the_one_that_was_proposed_first
            }
            left_guests {
                a_guest_that_signed_out_is_come_back_to_in_its_browser_alone
                the_guest_that_a_browser_has_meanwhile_can_be_come_back_to_as_well
                going_on_as_a_guest_is_written_down_with_who_was_left_for_it
                coming_back_is_no_way_round_a_suspension
                who_is_signed_in_stays_and_who_became_an_account_does_not_come_back
                after_its_time_a_guest_that_signed_out_is_let_go
                a_guest_whose_sessions_the_operator_ended_does_not_come_back
                many_short_guests_do_not_push_out_a_long_one
            }
            listings {
                what_is_set_for_a_listing_comes_back_and_is_written_once
                a_listed_game_keeps_its_time_until_it_is_taken_off
                a_listing_goes_with_its_project
            }
            log_quota {
                the_room_of_records_is_known_exactly_whatever_happens
                the_oldest_of_a_project_go_first_and_other_projects_keep_theirs
                a_flood_of_strangers_takes_no_record_of_a_player_away
                what_is_known_of_the_room_outlives_the_process
                the_records_of_a_removed_project_go_with_it_and_no_others
            }
            logs {
                a_record_comes_back_as_it_was
                the_newest_of_an_environment_come_first
                only_records_as_grave_as_asked_for_are_listed
                pages_of_records_join_without_gap_or_overlap
                records_of_one_millisecond_keep_their_order
                many_requests_at_once_are_all_kept
                a_clock_set_back_takes_no_records_away
                who_reads_on_while_others_write_misses_nothing
                who_is_far_behind_is_told_how_many_were_left_out
                a_record_from_the_far_future_keeps_no_others_there
                what_is_old_is_swept_in_batches_and_nothing_else
                a_request_is_there_whole_after_a_drop_without_close
                a_closed_store_takes_no_records
                errors_are_counted_by_deployment_and_hour
                numbers_of_errors_outlive_their_records_and_end_some_day
                a_search_finds_what_is_asked_for_and_nothing_else
                a_search_looks_at_so_many_and_goes_on_from_there
                a_page_ends_after_so_many_bytes_and_goes_on_from_there
                environments_with_new_errors_are_known_until_they_are_grouped
                errors_of_one_cause_add_up
                groups_are_found_by_state_and_text_and_in_pages
                a_resolved_group_comes_back_with_a_later_deployment
                an_environment_has_only_so_many_groups
                groups_are_removed_one_by_one_and_by_a_search
                old_groups_and_counts_are_swept
                the_groups_of_a_removed_project_go_with_it
                of_two_who_group_the_same_errors_one_is_counted
                new_regressed_and_growing_groups_leave_alerts
                an_environment_has_only_so_many_alerts_an_hour
                alerts_wait_until_they_are_due
                the_alerts_of_a_removed_project_go_with_it
            }
            merges {
                any_history_of_one_place_agrees_with_the_rules
                sign_ins_at_once_leave_every_identity_one_account
            }
            nodes {
                every_change_that_nodes_keep_in_memory_raises_a_version
                what_changes_nothing_for_nodes_raises_no_version
                a_change_that_failed_raises_no_version
                who_follows_changes_while_others_write_misses_none
                a_node_is_listed_with_what_it_reported_last
                a_node_that_stops_leaves_nothing_behind
                a_lease_has_one_holder_until_it_ends
                of_many_who_want_a_lease_at_once_one_gets_it
            }
            people {
                an_invitation_is_accepted_once_within_its_week
                an_invitation_gives_more_and_never_less
                only_an_account_joins_and_only_while_there_is_room
                open_invitations_are_few_and_the_owners
                a_members_role_is_changed_by_the_owner_alone
                a_removed_member_has_no_role_any_more
                who_lost_a_role_does_not_get_it_back_by_an_open_invitation
                it_is_known_who_set_where_data_of_a_project_goes
                projects_are_listed_with_the_role_in_each
                members_stay_with_a_transferred_project_and_go_with_a_removed_one
                of_many_who_accept_an_invitation_at_once_one_joins
                of_many_who_join_at_once_no_more_do_than_may
                who_accepts_an_invitation_while_being_removed_is_no_member
            }
            player_events {
                what_a_webhook_is_told_about_stays_until_it_is_set_again
                a_deleted_player_is_told_to_the_webhooks_that_asked_for_it
                events_about_players_go_with_their_webhook
            }
            player_games {
                favourites_are_few_and_listed_with_what_was_played_last
                what_was_played_is_forgotten_and_a_favourite_stays
                a_guests_games_go_to_the_account_that_it_is_merged_into
                games_of_players_go_with_their_project
            }
            players {
                the_first_name_that_nobody_has_is_taken
                names_are_unique_without_regard_to_case
                a_guest_without_a_free_name_leaves_nothing_behind
                a_guest_of_a_known_id_or_session_is_a_typed_conflict
                many_guests_at_once_get_names_of_their_own
                one_failing_write_takes_no_other_with_it
                a_name_is_changed_unless_somebody_has_it
                an_address_holds_no_more_guests_than_it_may
                of_many_at_once_an_address_holds_no_more_than_it_may
                guests_whose_cookie_has_not_come_back_are_few_and_held_by_nobody
                new_guests_count_for_a_while_against_the_limit_of_their_game_alone
                guests_whose_cookie_did_not_come_back_are_swept
            }
            previews {
                a_preview_comes_back_as_it_was_and_shows_what_was_deployed_last
                the_environment_of_a_preview_does_not_notice_it
                a_project_has_few_previews_and_learns_which_was_used_longest_ago
                a_preview_that_nobody_uses_is_removed
                previews_go_with_their_project
                of_many_previews_at_once_no_more_are_added_than_may_be
            }
            projects {
                projects_are_found_and_listed_by_slug
                the_last_deployment_of_an_environment_is_the_current_one
                a_deployment_of_an_unknown_project_changes_nothing
                an_owner_has_their_own_projects_by_slug
                of_many_who_want_a_slug_at_once_one_gets_it
            }
            retention {
                old_events_go_and_old_addresses_are_shortened
            }
            room {
                a_content_takes_room_once_and_every_entry_of_it
                the_oldest_deployment_that_is_not_shown_goes_first
            }
            sessions {
                a_session_is_looked_up_with_its_player
                an_ended_session_is_found_as_ended_and_stays_so
                a_session_is_renewed_forward_only
                one_session_of_a_player_ends_alone
                other_sessions_end_and_the_kept_one_stays
                whose_sessions_ended_is_listed_with_the_last_end_of_each
                what_means_nothing_any_more_is_swept
            }
            sign_ins {
                a_new_identity_makes_its_guest_an_account
                a_new_account_gets_the_name_that_it_asks_for
                a_known_identity_takes_the_guest_into_its_account
                without_a_guest_an_account_is_made_or_found
                a_guest_that_signed_out_meanwhile_stays_away
                the_guest_that_the_browser_holds_counts_where_none_began
                a_suspended_account_lets_nobody_in_and_changes_nothing
                a_new_identity_at_a_suspended_players_browser_is_an_account_of_its_own
                a_sign_in_is_taken_once_and_by_its_own_browser
                a_sign_in_is_taken_within_ten_minutes
            }
            stored_files {
                an_unused_file_is_claimed_after_a_day_and_forgotten
                a_file_of_a_deployment_is_never_claimed
                a_claimed_file_is_not_touched_until_its_claim_has_expired
                a_claim_that_was_taken_over_forgets_nothing
                files_of_deployments_are_adopted_once
                of_many_sweeps_at_once_each_claims_other_files
                what_is_touched_while_others_sweep_is_never_forgotten
            }
            suspensions {
                a_suspension_is_found_with_its_reason_until_it_is_lifted
            }
            takedown {
                what_is_taken_down_is_kept_and_told
                a_project_of_a_suspended_owner_is_down
                a_deleted_project_is_removed_after_its_grace_and_its_slug_stays_taken
            }
            test_players {
                test_players_are_the_same_every_time
                of_many_who_ask_for_a_test_player_at_once_all_get_the_same
                test_players_want_a_project_and_a_deployment
                a_test_token_that_is_given_again_is_told_once_an_hour
            }
            webhooks {
                a_webhook_comes_back_as_it_was_set
                the_last_outcome_of_a_webhook_is_kept_and_a_gone_one_is_off
                a_webhook_ends_with_its_projects_owner
            }
        }
    };
}

/// Makes a test of every concurrent case, and of the histories that a model predicts.
#[macro_export]
macro_rules! concurrent_suite {
    ($place:expr) => {
        $crate::cases! { $place;
            audit {
                who_goes_on_behind_events_while_others_write_misses_none
            }
            certificates {
                of_many_orders_at_once_one_begins
            }
            counting {
                sketches_of_several_nodes_are_united
                the_ranking_that_is_set_is_listed_by_every_node
            }
            deploy_tokens {
                of_many_deploy_tokens_at_once_no_more_are_added_than_may_be
            }
            devices {
                of_many_questions_at_once_one_device_comes_to_be
                of_many_refreshes_at_once_all_but_the_last_are_replaced
            }
            domains {
                of_many_projects_that_prove_a_domain_at_once_one_gets_it
            }
            game_sessions {
                of_many_who_redeem_a_code_at_once_one_does
            }
            handovers {
                a_developer_who_leaves_while_accepting_owns_the_project_or_left
                who_lost_a_project_decides_nothing_about_it
                of_many_projects_accepted_at_once_no_more_are_than_may
            }
            keys {
                of_many_keys_at_once_one_is_added
            }
            log_quota {
                the_room_of_records_is_known_exactly_whatever_happens
            }
            logs {
                many_requests_at_once_are_all_kept
                who_reads_on_while_others_write_misses_nothing
                of_two_who_group_the_same_errors_one_is_counted
            }
            merges {
                any_history_of_one_place_agrees_with_the_rules
                sign_ins_at_once_leave_every_identity_one_account
            }
            nodes {
                who_follows_changes_while_others_write_misses_none
                a_lease_has_one_holder_until_it_ends
                of_many_who_want_a_lease_at_once_one_gets_it
            }
            people {
                of_many_who_accept_an_invitation_at_once_one_joins
                of_many_who_join_at_once_no_more_do_than_may
                who_accepts_an_invitation_while_being_removed_is_no_member
            }
            players {
                many_guests_at_once_get_names_of_their_own
                one_failing_write_takes_no_other_with_it
                of_many_at_once_an_address_holds_no_more_than_it_may
            }
            previews {
                of_many_previews_at_once_no_more_are_added_than_may_be
            }
            projects {
                of_many_who_want_a_slug_at_once_one_gets_it
            }
            stored_files {
                of_many_sweeps_at_once_each_claims_other_files
                what_is_touched_while_others_sweep_is_never_forgotten
            }
            test_players {
                of_many_who_ask_for_a_test_player_at_once_all_get_the_same
            }
        }
    };
}

/// Makes a test of each of these cases, in a module per file.
#[doc(hidden)]
#[macro_export]
macro_rules! cases {
    ($place:expr; $($module:ident { $($name:ident)* })*) => {
        $(
            mod $module {
                use super::*;
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $name() {
                        let place = $place;
                        $crate::$module::$name(&place).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The names of the functions in a file that take a place.
    fn cases(file: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(file).unwrap();
        let text = text.replace("(\n    place", "(place");
        let functions = text.split("\npub async fn ").skip(1);
        let cases = functions.filter_map(|function| function.split_once("(place: &dyn Place"));
        let names = cases.map(|(name, _)| name.to_owned());
        names.filter(|name| !name.contains('(')).collect()
    }

    #[test]
    fn every_case_is_in_the_suite() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let suite = include_str!("lib.rs");
        let mut found = 0;
        for folder in [root.clone(), root.join("logs")] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_none_or(|extension| extension != "rs") {
                    continue;
                }
                for case in cases(&path) {
                    let listed = suite.lines().any(|line| line.trim() == case);
                    assert!(listed, "{case} of {} is not in the suite", path.display());
                    found += 1;
                }
            }
        }
        assert!(found > 100, "{found}");
    }
}

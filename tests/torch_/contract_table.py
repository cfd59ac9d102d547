"""Which of torch's checks is which test of ours, and which does not apply, with the reason.

Patterns are those of shells; the first that fits a name counts. A row with `::` names a file and a test of ours, any other is a
reason.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

STEPS, STATES, SCHEDULERS = (f"test_torch_contract_{part}" for part in ("steps", "states", "schedulers"))
OPTIONS = "test_torch_options"

CUDA = "needs CUDA"
LBFGS = "is about LBFGS, which calls its closure several times in one step"
RATES = f"{SCHEDULERS}::test_rates_are_those_of_torch_and_every_step_is_made_with_them"

OPTIM = {
    "test_optim_infos_do_not_specify_global_cliquey_kwargs": f"{STEPS}::test_every_option_is_among_the_inputs",
    "test_errors": f"{STEPS}::test_what_is_wrong_is_refused",
    "test_forloop_goes_right_direction": f"{STEPS}::test_the_loss_goes_the_right_way",
    "test_forloop_goes_right_direction_multigpu": f"{CUDA}: parameters on two devices",
    "test_param_group_with_lrscheduler_goes_right_direction": f"{STEPS}::test_schedulers_of_groups_go_the_right_way",
    "test_tensor_lr": f"{STEPS}::test_a_learning_rate_in_a_tensor_is_that_number",
    "test_rosenbrock_sparse": f"{STEPS}::test_sparse_gradients_are_dense_ones",
    "test_complex": f"{STEPS}::test_a_complex_parameter_is_its_real_view",
    "test_complex_2d": f"{STEPS}::test_a_complex_parameter_is_its_real_and_its_imaginary_part",
    "test_adamw_serialization": f"{STATES}::test_decoupled_weight_decay_is_saved",
    "test_foreach_matches_forloop": f"{STEPS}::test_foreach_is_the_loop",
    "test_mixed_device_dtype": f"{STEPS}::test_dtypes_side_by_side",  # the dtypes; for devices it needs CUDA
    "test_set_default_dtype_works_with_foreach": f"{STEPS}::test_the_default_dtype_does_not_matter",
    "test_foreach_large_tensor": "needs 72 GB: a tensor of 2**32 entries",
    "test_fused_large_tensor": "needs 64 GB: a tensor of 2**32 entries",
    "test_peak_memory_foreach": f"{STEPS}::test_foreach_takes_little_memory",
    "test_fused_matches_forloop": f"{STEPS}::test_fused_is_the_loop",
    "test_fused_error_on_params_on_meta": f"{STEPS}::test_fused_refuses_parameters_without_memory",
    "test_fused_does_not_step_if_foundinf": f"{STEPS}::test_nothing_happens_if_a_scaler_found_inf",
    "test_cpu_load_state_dict": f"{CUDA}, or another accelerator: a file from the CPU is loaded there; torch skips it on CPUs",
    "test_param_groups_weight_decay": f"{STEPS}::test_groups_have_their_own_weight_decay",
    "test_param_groups_lr": f"{STEPS}::test_groups_have_their_own_learning_rate",
    "test_step_is_noop_when_params_have_no_grad": f"{STEPS}::test_nothing_happens_without_gradients",
    "test_step_is_noop_for_zero_grads": f"{STEPS}::test_nothing_happens_for_zero_gradients",
    "test_grads_are_never_inplaced_into": f"{STEPS}::test_gradients_are_never_written_into",
    "test_optimizer_can_be_printed": f"{STATES}::test_printing",
    "test_state_dict_deterministic": f"{STATES}::test_equal_runs_have_equal_state_dicts",
    "test_can_load_older_state_dict": f"{STATES}::test_older_state_dicts_are_loaded",
    "test_can_load_from_to_named_state_dict": f"{STATES}::test_a_loaded_state_continues_the_same_run",
    "test_save_load_equality_with_weights_only": f"{STATES}::test_a_state_is_the_same_after_a_file",
    "test_load_nontensor_step": f"{STATES}::test_a_step_count_may_be_a_plain_number",
    "test_state_dict_with_cuda_params": f"{CUDA}; another dtype: test_a_state_of_other_parameters_is_taken_as_it_is",
    "test_state_dict_*hook": f"{STATES}::test_hooks_of_state_dicts",
    "test_load_state_dict_*hook*": f"{STATES}::test_hooks_of_loading",
    "test_step_*hook*": f"{STATES}::test_hooks_of_steps",
    "test_deepcopy_copies_all_public_attrs": f"{STATES}::test_copies_have_all_public_attributes",
    "test_second_order_optims_return_consistent_types": LBFGS,
    "test_step_iteration": LBFGS,
    "test_fused_cpu_matches_cuda": f"{CUDA}: it compares two devices",
    "test_defaults_changed_to_foreach": f"{CUDA}: on CPUs ours are fused by default, where torch's are loops",
    "test_non_empty_state": f"{STATES}::test_there_is_a_state_after_a_step",
    "test_fused_mixed_precision_*": f"{CUDA}: buffers that a hook makes in bfloat16; ours have the option accumulator_dtype",
}

LR_SCHEDULER = {
    "test_error_when_getlr_has_epoch": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_linearlr_start_factor_limits*": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_*_invalid_*": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_onecycle_lr_cannot_calculate_total_steps": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_multiplicative_lr_with_lr_lambda": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_swalr_hypers": f"{SCHEDULERS}::test_what_schedulers_refuse",
    "test_no_cyclic_references*": f"{SCHEDULERS}::test_nothing_refers_to_itself",
    "test_cycle_lr_removed_after_out_of_scope": f"{SCHEDULERS}::test_nothing_refers_to_itself",
    "test_old_pattern_*": f"{SCHEDULERS}::test_the_order_of_steps_is_watched",
    "test_new_pattern_*": f"{SCHEDULERS}::test_the_order_of_steps_is_watched",
    "test_*_is_constant_for_constant_epoch": f"{SCHEDULERS}::test_epochs_by_number",
    "test_*_with_epoch": f"{SCHEDULERS}::test_epochs_by_number",
    "test_closed_form_*": f"{SCHEDULERS}::test_epochs_by_number",
    "test_CosineAnnealingWarmRestarts_lr[23]": f"{SCHEDULERS}::test_restarts_at_any_epoch",
    "test_CosineAnnealingWarmRestarts_T_cur_reset": f"{SCHEDULERS}::test_restarts_at_any_epoch",
    "test_raise_error_when_last_epoch_is_greater_than_0_*": f"{SCHEDULERS}::test_a_new_scheduler_takes_over",
    "test_cos_anneal_lr_continue": f"{SCHEDULERS}::test_a_new_scheduler_takes_over",
    "test_lr_scheduler_checkpoint*": f"{SCHEDULERS}::test_a_new_scheduler_takes_over",
    "test_lr_scheduler_state_dict_load": f"{SCHEDULERS}::test_a_resumed_schedule_is_the_same_one",
    "test_cycle_lr_state_dict_picklable": f"{SCHEDULERS}::test_functions_of_schedulers_are_not_saved_but_objects_are",
    "test_cycle_lr_scale_fn_restored_*": f"{SCHEDULERS}::test_functions_of_schedulers_are_not_saved_but_objects_are",
    "test_onecycle_lr_legacy_state_dict": f"{SCHEDULERS}::test_functions_of_schedulers_are_not_saved_but_objects_are",
    "test_lambda_lr_state_dict_*": f"{SCHEDULERS}::test_functions_of_schedulers_are_not_saved_but_objects_are",
    "test_*_state_dict": f"{SCHEDULERS}::test_a_scheduler_becomes_the_one_it_loads",
    "test_cycle_lr_cycle_momentum_*": f"{SCHEDULERS}::test_momentum_is_cycled_where_there_is_one",
    "test_cycle_lr_with_momentumless_optimizer": f"{SCHEDULERS}::test_momentum_is_cycled_where_there_is_one",
    "test_cosine_then_cyclic": f"{SCHEDULERS}::test_one_after_the_other_by_hand",
    "test_add_param_group_*": f"{SCHEDULERS}::test_a_group_that_joins_has_its_rate_reduced_as_well",
    "test_constant_initial_*": f"{SCHEDULERS}::test_a_tensor_that_changes_later_is_not_the_first_rate",
    "test_get_last_lr_*": RATES,
    "test_step_lr": RATES,
    "test_multi_step_lr": RATES,
    "test_constantlr": RATES,
    "test_linearlr": RATES,
    "test_exp_lr": RATES,
    "test_poly_lr": RATES,
    "test_cos_anneal_lr": RATES,
    "test_lambda_lr": RATES,
    "test_multiplicative_lr": RATES,
    "test_reduce_lr_on_plateau*": RATES,
    "test_sequentiallr*": RATES,
    "test_chained_lr*": RATES,
    "test_compound_*": RATES,
    "test_cycle_lr_*": RATES,
    "test_onecycle_lr_*": RATES,
    "test_CosineAnnealingWarmRestarts_lr1": RATES,
    "test_swalr_*": RATES,
}

DERIVATIVE = f"{STEPS}::test_a_step_has_a_derivative"
DIFFERENTIABLE = {
    "test_adagrad": DERIVATIVE,
    "test_adam": DERIVATIVE,
    "test_adamw": DERIVATIVE,
    "test_adam*_differentiable_lr": DERIVATIVE,
    "test_differentiable_lr": DERIVATIVE,
    "test_*differentiable_*": "is about derivatives in weight decay and betas, which are plain numbers in ours",
    "test_*": "is about an optimizer that none of ours takes after",
}

OTHERS = {
    "test_correctness": f"{OPTIONS}::test_compiled_step",
    "test_grad_scaling_autocast_fused_optimizers": f"{STEPS}::test_a_scaler_leaves_it_to_the_optimizer",
}


def answer(name: str, table: dict[str, str]) -> tuple[str, str] | None:
    """The pattern that fits the name of a check of torch, and what the table says there."""
    return next(((pattern, text) for pattern, text in table.items() if fnmatchcase(name, pattern)), None)

"""The names of torch's checks, as its test files have them in 2026: they are not in the wheels, and names are facts.

A number in braces stands for several names: `a{1..3}` for a1, a2 and a3.
"""

from __future__ import annotations

import re

# test/test_optim.py
TEST_OPTIM_RENEWED = """
    test_optim_infos_do_not_specify_global_cliquey_kwargs test_errors test_forloop_goes_right_direction
    test_forloop_goes_right_direction_multigpu test_param_group_with_lrscheduler_goes_right_direction test_tensor_lr
    test_rosenbrock_sparse test_complex test_complex_2d test_adamw_serialization test_foreach_matches_forloop
    test_mixed_device_dtype test_set_default_dtype_works_with_foreach test_foreach_large_tensor test_peak_memory_foreach
    test_fused_matches_forloop test_fused_error_on_params_on_meta test_fused_large_tensor test_fused_does_not_step_if_foundinf
    test_cpu_load_state_dict test_param_groups_weight_decay test_param_groups_lr test_step_is_noop_when_params_have_no_grad
    test_step_is_noop_for_zero_grads test_grads_are_never_inplaced_into test_optimizer_can_be_printed
    test_state_dict_deterministic test_can_load_older_state_dict test_can_load_from_to_named_state_dict
    test_save_load_equality_with_weights_only test_load_nontensor_step test_state_dict_with_cuda_params
    test_state_dict_pre_hook test_state_dict_post_hook test_state_dict_pre_post_hook test_load_state_dict_pre_hook_and_prepend
    test_load_state_dict_post_hook test_load_state_dict_pre_post_hook test_step_post_hook test_step_pre_hook test_step_all_hooks
    test_deepcopy_copies_all_public_attrs test_second_order_optims_return_consistent_types test_fused_cpu_matches_cuda
    test_defaults_changed_to_foreach test_non_empty_state test_fused_mixed_precision_state_init
    test_fused_mixed_precision_hook_skips_existing_state test_fused_mixed_precision_numerics test_step_iteration
"""

# test/optim/test_lrscheduler.py
TEST_LR_SCHEDULER = """
    test_error_when_getlr_has_epoch test_no_cyclic_references test_no_cyclic_references_in_step test_old_pattern_warning
    test_old_pattern_warning_with_arg test_old_pattern_warning_resuming test_old_pattern_warning_resuming_with_arg
    test_old_pattern_warning_with_overridden_optim_step test_new_pattern_no_warning test_new_pattern_no_warning_with_arg
    test_new_pattern_no_warning_with_overridden_optim_step test_step_lr_is_constant_for_constant_epoch
    test_exponential_lr_is_constant_for_constant_epoch test_constantlr_is_constant_for_constant_epoch
    test_linear_linearlr_is_constant_for_constant_epoch test_polynomial_lr_is_constant_for_constant_epoch test_step_lr
    test_get_last_lr_step_lr test_get_last_lr_multi_step_lr
    test_raise_error_when_last_epoch_is_greater_than_0_and_initial_lr_is_not_specified test_multi_step_lr
    test_multi_step_lr_with_epoch test_get_last_lr_constantlr test_get_last_lr_linearlr test_constantlr test_linearlr
    test_linearlr_start_factor_limits{1..2} test_constantlr_with_epoch test_linearlr_with_epoch test_exp_lr test_poly_lr
    test_cos_anneal_lr test_closed_form_step_lr test_closed_form_linearlr test_closed_form_constantlr
    test_closed_form_multi_step_lr test_closed_form_exp_lr test_closed_form_poly_lr test_closed_form_cos_anneal_lr
    test_cos_anneal_lr_continue test_reduce_lr_on_plateau{1..8} test_reduce_lr_on_plateau_get_last_lr_before_step
    test_reduce_lr_on_plateau_preserves_lr_type test_sequentiallr{1..5} test_sequentiallr_no_warnings
    test_get_last_lr_sequentiallr test_sequentiallr_does_not_alias_lr_and_initial_lr test_chained_lr2_get_last_lr_before_step
    test_chained_lr{1..5} test_compound_step_and_multistep_lr test_compound_step_and_exp_lr test_compound_exp_and_multistep_lr
    test_compound_exp_and_linearlr test_compound_step_and_constantlr test_compound_linearlr_and_multistep_lr
    test_compound_cosanneal_and_step_lr test_compound_cosanneal_and_multistep_lr test_compound_cosanneal_and_linearlr
    test_compound_cosanneal_and_exp_lr test_compound_reduce_lr_on_plateau{1..5} test_cycle_lr_invalid_mode
    test_cycle_lr_triangular_mode_one_lr test_cycle_lr_triangular_mode_one_lr_no_momentum
    test_cycle_lr_triangular2_mode_one_lr test_cycle_lr_exp_range_mode_one_lr test_cycle_lr_triangular_mode
    test_cycle_lr_triangular2_mode test_cycle_lr_exp_range_mode test_cycle_lr_triangular_mode_step_size_up_down
    test_cycle_lr_triangular2_mode_step_size_up_down test_cycle_lr_exp_range_mode_step_size_up_down
    test_cycle_lr_with_momentumless_optimizer test_cycle_lr_cycle_momentum_fail_with_momentumless_optimizer
    test_cycle_lr_cycle_momentum_with_beta1_optimizer test_cycle_lr_removed_after_out_of_scope
    test_cycle_lr_state_dict_picklable test_cycle_lr_scale_fn_restored_from_state_dict test_onecycle_lr_invalid_anneal_strategy
    test_onecycle_lr_invalid_pct_start test_onecycle_lr_cannot_calculate_total_steps test_onecycle_lr_linear_annealing
    test_onecycle_lr_linear_annealing_three_phases test_onecycle_lr_cosine_annealing test_onecycle_lr_legacy_state_dict
    test_cycle_lr_with_adam test_lambda_lr test_multiplicative_lr test_multiplicative_lr_with_lr_lambda
    test_CosineAnnealingWarmRestarts_lr{1..3} test_CosineAnnealingWarmRestarts_T_cur_reset test_swalr_no_anneal
    test_swalr_cosine_anneal_after_multiplicative test_swalr_linear_anneal_after_multiplicative test_swalr_hypers
    test_step_lr_state_dict test_multi_step_lr_state_dict test_exp_step_lr_state_dict test_cosine_lr_state_dict
    test_reduce_lr_on_plateau_state_dict test_lambda_lr_state_dict_fn test_lambda_lr_state_dict_obj
    test_CosineAnnealingWarmRestarts_lr_state_dict test_swa_lr_state_dict test_cosine_then_cyclic
    test_lr_scheduler_state_dict_load test_add_param_group_does_not_break_reduce_lr_on_plateau
    test_add_param_group_errors_reduce_lr_on_plateau test_constant_initial_lr test_constant_initial_params_cyclelr
    test_constant_initial_params_onecyclelr test_constant_initial_params_swalr test_lr_scheduler_checkpoint
    test_lr_scheduler_checkpoint_on_plateau
"""

# test/optim/test_optim.py
TEST_DIFFERENTIABLE_OPTIMIZER = """
    test_sgd test_adam test_rmsprop test_adadelta test_adagrad test_adamax test_asgd test_rprop test_adamw test_nadam test_radam
    test_adam_differentiable_lr test_adam_differentiable_weight_decay test_adam_differentiable_betas
    test_adam_differentiable_all_hyperparams test_adamw_differentiable_lr test_adamw_differentiable_weight_decay
    test_adamw_differentiable_betas test_adamw_differentiable_all_hyperparams test_differentiable_lr
    test_differentiable_weight_decay test_differentiable_weight_decay_and_lr
"""

# The other two that take optimizers from the same list: test/inductor/test_compiled_optimizers.py and test/test_torch.py
ELSEWHERE = """
    test_correctness test_grad_scaling_autocast_fused_optimizers
"""


def names(text: str) -> list[str]:
    """The names, one by one."""
    found = []
    for word in text.split():
        stem, *bounds = re.fullmatch(r"(\w+)(?:\{(\d)\.\.(\d)\})?", word).groups()
        found += [stem] if bounds[0] is None else [f"{stem}{k}" for k in range(int(bounds[0]), int(bounds[1]) + 1)]
    return found

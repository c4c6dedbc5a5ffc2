"""The tests of PyTorch that transform a captured graph, and ours that do the same.

They are those of test/test_fx.py, test/fx/test_subgraph_rewriter.py, test/fx/test_dce_pass.py, and of
test/test_fx_experimental.py on public passes. Left out are tests of what is not a transformation of a
captured graph: symbolic tracing itself and its errors, proxies, Python code and its generation, pickling,
types in annotations, TorchScript, symbolic integers of torch.compile, profilers, partitioners of devices,
and compatibility of signatures.
"""

from __future__ import annotations

# PyTorch's test: ours, as module.function after tests/frontends/torch/test_fx_
DONE = {
    # test_fx.py: graphs and nodes
    "test_graph_edit_with_proxy": "edits.test_a_copied_graph_is_used_twice",
    "test_graph_unique_names": "edits.test_a_copied_graph_is_used_twice",
    "test_graph_unique_names_manual": "edits.test_names_of_copies_are_unique",
    "test_stack_traces": "edits.test_a_copy_has_the_place_of_its_source",
    "test_stack_traces_with_transformer": "runs.test_places_and_notes_are_kept",
    "test_transformer_preserves_nn_module_stack_for_get_attr": "runs.test_places_and_notes_are_kept",
    "test_all_input_nodes": "edits.test_inputs_of_calls",
    "test_deepcopy_graphmodule_with_transform": "edits.test_copies_with_new_calls",
    "test_deepcopy_with_submods_params": "edits.test_copies_have_modules_and_parameters",
    "test_sequential": "edits.test_copies_have_modules_and_parameters",
    "test_deepcopy_graphmodule": "edits.test_notes_of_a_model_are_copied",
    "test_deepcopy_no_recursion": "edits.test_notes_of_a_model_are_copied",
    "test_deepcopy_recursion_depth": "edits.test_long_graphs_are_copied",
    "test_module_deepcopy_edit_nodes": "flows.test_deep_copies_are_independent",
    "test_pretty_print_node": "modules.test_texts_of_nodes_and_models",
    "test_pretty_print_graph": "modules.test_texts_of_nodes_and_models",
    "test_pretty_print_targets": "modules.test_texts_of_nodes_and_models",
    "test_pretty_print": "modules.test_texts_of_nodes_and_models",
    "test_print_graph": "modules.test_texts_of_nodes_and_models",
    "test_graph_fns": "edits.test_calls_of_each_kind",
    "test_inf_nan_kwds": "edits.test_infinite_constants",
    "test_remove_uses": "edits.test_removed_nodes_use_nothing",
    "test_remove_uses_with_custom_filter": "edits.test_the_caller_chooses_the_users",
    "test_prepend_does_not_leak": "edits.test_erased_nodes_are_freed",
    "test_copy_no_remap": "edits.test_nodes_of_another_graph_are_refused",
    "test_wrong_topo": "edits.test_wrong_orders_are_refused",
    "test_wrong_target_type": "edits.test_unknown_functions_are_refused",
    "test_replace_uses": "edits.test_all_calls_of_a_function_are_replaced",
    "test_replace_input": "edits.test_an_input_replaces_an_input",
    "test_insertion_point": "edits.test_insertion_before_a_node",
    "test_multi_insert_point": "edits.test_values_are_inserted_in_order",
    "test_update_args_api": "edits.test_an_input_replaces_an_input",
    "test_update_kwargs_api": "edits.test_arguments_by_keyword",
    "test_move_before": "edits.test_a_late_call_is_moved_forward",
    "test_prepend_self": "edits.test_a_node_is_next_to_itself",
    "test_erase_node_error": "edits.test_used_nodes_stay",
    "test_find_uses": "edits.test_users_of_values",
    "test_inline_graph": "edits.test_graphs_are_inlined",
    "test_reassign_args_kwargs_uses": "edits.test_reassigned_arguments_change_the_users",
    # shapes, Interpreter, Transformer
    "test_example_shape_prop": "runs.test_shapes_are_known",
    "test_shape_prop_aggregate": "runs.test_results_of_submodules_are_known",
    "test_interpreter": "runs.test_a_run_computes_what_the_module_computes",
    "test_interpreter_other_graph": "runs.test_a_run_computes_what_the_module_computes",
    "test_interpreter_boxed_run_argument_validation": "runs.test_a_run_can_take_its_inputs_from_a_list",
    "test_interpreter_run_node_override": "runs.test_nodes_get_notes_in_a_run",
    "test_interpreter_onthefly_swap": "runs.test_functions_and_methods_are_swapped_in_a_run",
    "test_interpreter_partial_eval": "runs.test_a_run_starts_in_the_middle",
    "test_interpreter_star_args": "runs.test_a_run_takes_all_positional_inputs",
    "test_interpreter_noop_resnet18": "runs.test_a_large_model_is_transformed",
    "test_interpreter_gc_values": "runs.test_values_are_dropped_after_their_last_use",
    "test_interpreter_default_args": "runs.test_defaults_are_constants_of_the_trace",
    "test_interpreter_not_enough_args": "runs.test_missing_inputs_are_an_error",
    "test_transformer_noop": "runs.test_a_transformer_that_changes_nothing",
    "test_transformer_op_swap": "runs.test_functions_and_methods_are_swapped",
    "test_transformer_multi_outputs": "runs.test_several_results_are_kept",
    "test_wrapped_via_decorator_and_transformed": "runs.test_wrapped_functions_are_kept",
    # modules
    "test_submodule_manipulation_API": "modules.test_submodules_are_added_and_deleted",
    "test_delete_unused_submodules_leaf": "modules.test_parts_of_leaf_modules_are_used",
    "test_fx_stateless": "modules.test_other_parameters_in_a_call",
    "test_tracing_graphmodules_as_leaf_submodules": "modules.test_traced_models_are_parts_of_models",
    "test_preserve_unused_attr_after_unpickle": "modules.test_unused_parts_are_saved",
    "test_custom_traceback_raised_when_exception_source_is_graphmodule": (
        "modules.test_errors_name_the_place_of_a_call"
    ),
    # test_subgraph_rewriter.py
    "test_subgraph_rewriter_preserves_logic": "rewriter.test_the_order_of_arguments",
    "test_subgraph_rewriter_with_oneliner_pattern": "rewriter.test_one_call",
    "test_subgraph_rewriter_multiple_pattern_match": "rewriter.test_several_matches",
    "test_subgraph_rewriter_pattern_is_entire_graph": (
        "rewriter.test_the_pattern_is_the_whole_graph_and_its_result_has_another_shape"
    ),
    "test_subgraph_rewriter_single_pattern_match": "rewriter.test_several_calls_from_one_value",
    "test_subgraph_rewriter_graph_argument_order": "rewriter.test_the_order_of_arguments",
    "test_subgraph_rewriter_correct_output_replacement": "rewriter.test_only_the_matched_use_is_replaced",
    "test_subgraph_rewriter_traced_as_callable": "rewriter.test_traced_models_are_patterns",
    "test_subgraph_rewriter_pattern_output_pattern_node_can_have_users_that_are_not_matched": (
        "rewriter.test_the_result_has_other_users"
    ),
    "test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users_that_are_not_matched": (
        "rewriter.test_inner_values_with_other_users_do_not_match"
    ),
    "test_subgraph_rewriter_placeholder_matching": (
        "rewriter.test_an_input_of_the_pattern_matches_any_value"
    ),
    "test_subgraph_rewriter_replaces_referenced_submodules": (
        "rewriter.test_modules_of_a_replacement_are_added"
    ),
    "test_subgraph_rewriter_replace_consecutive_submodules": "rewriter.test_matches_in_a_row",
    "test_subgraph_rewriter_with_overlapping_matches": "rewriter.test_overlapping_matches",
    "test_subgraph_rewriter_replace_with_multiple_outputs": "rewriter.test_several_results",
    "test_subgraph_rewriter_replace_with_duplicated_outputs": ("rewriter.test_one_value_for_several_results"),
    "test_subgraph_rewriter_with_unused_args": "rewriter.test_unused_inputs_stay",
    "test_subgraph_rewriter_call_method": "rewriter.test_methods_are_matched",
    "test_subgraph_rewriter_nodes_with_kwargs": "rewriter.test_keyword_arguments_are_matched",
    "test_subgraph_rewriter_local_revert": "rewriter.test_anchors_that_do_not_match_are_left",
    "test_replace_pattern_with_filters": "rewriter.test_filters_choose_matches",
    "test_matching_pattern_with_list_type_arg": "rewriter.test_an_input_of_the_pattern_matches_a_list",
    "test_replacement_with_attrs": "rewriter.test_patterns_and_replacements_have_attributes",
    # test_dce_pass.py
    "test_simple": "rewriter.test_dead_code",
    "test_dead_chain": "rewriter.test_dead_code",
    "test_dead_getattr": "rewriter.test_dead_code",
    "test_dead_placeholder": "rewriter.test_dead_code",
    "test_dead_placeholder_with_user": "rewriter.test_dead_code",
    "test_impure_custom": "rewriter.test_calls_with_effects_are_kept",
    # test_fx_experimental.py
    "test_replace_target_nodes_with": "flows.test_the_target_is_set",
    "test_conv_bn_fusion": "passes.test_batch_norms_go_into_convolutions",
    "test_conv_bn_fusion_not_running_state": "passes.test_batch_norms_without_statistics_stay",
    "test_subgraph_creation": "passes.test_parts_by_callback",
    "test_split_module_kwargs_expansion": "passes.test_arguments_by_keyword_in_parts",
    "test_subgraph_trivial_resnet": "passes.test_one_part",
    "test_split_module_default_arg": "passes.test_one_part",
    "test_subgraph_uniquename": "passes.test_parts_by_name",
    "test_normalize_binary_operators": "passes.test_operators_are_normalized",
    "test_normalize_args": "passes.test_arguments_are_normalized",
    "test_to_folder": "modules.test_a_folder_computes_the_same",
}

# PyTorch's test: why it is not done
NOT_DONE = {
    "test_construct_root_dict": "a graph is traced or loaded, not made of a dict of modules",
    "test_graph_module_init_buffer_param_copied_dict_init": "as above",
    "test_graph_module_init_buffer_param_copied_mod_init": "as above",
    "test_shape_prop_layout": "NumPy arrays have no memory format",
    "test_shape_prop_layout_3d": "as above",
    "test_nn_module_stack": "the graph of a node is that of its module; `expr.source.scope` after `flatten`",
    "test_insert_arg": "the output has one argument, a tree: `graph.output((a, b))`",
    "test_adding_side_effect_function": (
        "a call without a tensor is not recorded; `is_impure_node=` keeps others"
    ),
    "test_keep_torch_assert": "assertions are checked while tracing, and not recorded",
    "test_keep_module_with_side_effects": "`is_impure_node=` declares it, no attribute of the module",
    "test_split_qualname_mapping": "a part has the paths of the whole model, no map is needed",
}

# the public names that these tests use, by class
NAMES = {
    "graph": (
        *["call_function", "call_method", "call_module", "create_node", "eliminate_dead_code", "erase_node"],
        *["find_nodes", "get_attr", "graph_copy", "inserting_before", "inserting_after", "lint", "node_copy"],
        *["nodes", "output", "output_node", "placeholder", "print_tabular", "python_code", "owning_module"],
    ),
    "node": (
        *["all_input_nodes", "append", "args", "format_node", "graph", "insert_arg", "is_impure", "kwargs"],
        *["meta", "name", "next", "op", "prepend", "prev", "replace_all_uses_with", "replace_input_with"],
        *["stack_trace", "target", "type", "update_arg", "update_kwarg", "users"],
    ),
    "tm": (
        *["add_submodule", "code", "delete_all_unused_submodules", "delete_submodule", "get_buffer", "graph"],
        *["get_parameter", "get_submodule", "load_state_dict", "meta", "named_modules", "named_parameters"],
        *["named_buffers", "print_readable", "recompile", "state_dict", "to_folder"],
    ),
    "interpreter": (
        *["boxed_run", "call_function", "call_method", "call_module", "env", "fetch_attr", "get_attr"],
        *["fetch_args_kwargs_from_env", "map_nodes_to_values", "output", "placeholder", "run", "run_node"],
    ),
    "transformer": ("transform",),
}

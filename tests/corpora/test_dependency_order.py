from coderet.corpora.dependency_order import dependency_order


def test_a_file_comes_after_those_that_it_imports_and_else_in_the_order_given():
    assert dependency_order({"a": ["c", "b"], "b": [], "c": ["b"], "d": []}) == ["b", "c", "a", "d"]


def test_a_cycle_is_cut_where_it_comes_back():
    assert dependency_order({"a": ["b"], "b": ["c"], "c": ["a"]}) == ["c", "b", "a"]
    assert dependency_order({"a": ["a"]}) == ["a"]


def test_a_path_that_is_only_imported_is_in_the_order_too():
    assert dependency_order({"a": ["x"]}) == ["x", "a"]


def test_a_chain_of_five_thousand_files_is_no_trouble():
    chain = {str(number): [str(number + 1)] for number in range(5000)}
    assert dependency_order(chain) == [str(number) for number in reversed(range(5001))]

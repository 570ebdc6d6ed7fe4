// What the examples take: [--wire threads|mpi] [mesh [layout]]. The wire is mpi under mpirun, else threads.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "weft/weft.h"

struct Arguments {
  weft::wire::Choice wire = weft::wire::automatic();
  weft::Mesh mesh;
  weft::Layout layout;

  Arguments(int argc, char** argv, const std::string& mesh_text, const std::string& layout_text) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() >= 2 && words[0] == "--wire") {
      wire = weft::wire::named(words[1]);
      words.erase(words.begin(), words.begin() + 2);
    }
    mesh = weft::Mesh::parse(words.empty() ? mesh_text : words[0]);
    layout = weft::Layout::parse(words.size() < 2 ? layout_text : words[1]);
    if (weft::wire::process() > 0) std::cout.setstate(std::ios::failbit);  // one process speaks for all
  }
};

# Writes files as C++ strings: cmake -DHEADER=… -DOUT=… -DFILES=kName=path,kName=path,… -P embed.cmake
# makes OUT, which includes HEADER and defines weft::embedded::kName as the contents of the file at path.
set(text "#include \"${HEADER}\"\n\nnamespace weft::embedded {\n\n")
string(REPLACE "," ";" files "${FILES}")
foreach(entry ${files})
  string(REGEX MATCH "^([^=]+)=(.*)$" matched "${entry}")
  file(READ "${CMAKE_MATCH_2}" contents)
  string(APPEND text "const char* const ${CMAKE_MATCH_1} = R\"weft(${contents})weft\";\n\n")
endforeach()
file(WRITE "${OUT}" "${text}}  // namespace weft::embedded\n")

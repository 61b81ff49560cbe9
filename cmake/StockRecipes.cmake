# Run as a script: recipes/*.ini as C, so that the program has them wherever it lies.
#   cmake -DFOLDER=recipes -DOUT=stock_texts.c -P StockRecipes.cmake

file(GLOB recipes ${FOLDER}/*.ini) # in the order of names
set(code "/* Made from the files of recipes; do not edit. */\n#include \"train/stock.h\"\n\n")
string(APPEND code "const sti_stock_recipe sti_stock_recipes[] = {\n")
foreach(recipe IN LISTS recipes)
  get_filename_component(name ${recipe} NAME_WE)
  file(READ ${recipe} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
  string(APPEND code "    {\"${name}\",\n     \"${text}\"},\n")
endforeach()
string(APPEND code "    {NULL, NULL}};\n")
file(WRITE ${OUT} "${code}")

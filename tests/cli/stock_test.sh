# A training without a recipe: which built-in one is taken for what data, and what is said.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
tests=$STINT_SOURCE/tests/cli
python3 "$tests/cli_data.py" letters 12 32 8 || fail "no data"
python3 "$tests/cli_data.py" digits 28 8 4 || fail "no data"
python3 "$tests/stock_data.py" small colour 32x32 || fail "no data"
python3 "$tests/stock_data.py" mixed colour 32x32 20x30 || fail "no data"
python3 "$tests/stock_data.py" large grey 40x40 || fail "no data"
mkdir text && words "the cat sat on a mat and saw that it was flat" 4000 >text/a.txt

# the choice; one step is faster than a plan, which looks for the least memory
step() { # STATUS DATA ARGUMENT...
    local want=$1 data=$2
    shift 2
    run "$want" train --data "$data" --steps 1 --set train.eval_every=0 --out one --force "$@"
}
for pair in letters:glyphs-resnet8 digits:mnist-lenet5 small:cifar10-resnet20 \
    large:photos-resnet18 text:shakespeare-small text/a.txt:shakespeare-small; do
    width=8
    case $pair in digits:*) width=0 ;; esac
    step 0 "${pair%:*}" --json --batch 4 --shards 2 --set model.width=$width
    json_ok
    json "j['recipe'] == '${pair#*:}'"
done
says err "text: recipe shakespeare-small (built in), with"
step 0 mixed --set model.width=4
says err "8 colour images of mixed sizes in 2 classes: recipe photos-resnet18 (built in), with"
says err "data.size = 224"
says err "train.batch = 8"
# fewer images than the batch: all of them are one, at a smaller learning rate
step 0 small
says err "4 colour images of 32 x 32 in 2 classes: recipe cifar10-resnet20"
says err "train.batch = 4"
says err "optimizer.lr = 0.00625"
# what is said of the data decides, also of its size
step 0 large --set data.size=32
says err "of 32 x 32 in 2 classes: recipe glyphs-resnet8"
step 0 small --set data.channels=1
says err "4 grey images of 32 x 32 in 2 classes: recipe glyphs-resnet8"
STINT_DATA=letters run 0 train --steps 1 --out one --force
says err "recipe glyphs-resnet8"
step 0 letters --quiet
silent err
run 0 plan --data letters --json
json "j['recipe'] == 'glyphs-resnet8'"
says err "recipe glyphs-resnet8 (built in), with"

# a run: the recipe is named, saved, and gives the same weights again
run 0 train --data letters --steps 2 --batch 8 --json
json_ok
json "j['recipe'] == 'glyphs-resnet8' and j['out'].endswith('/runs/glyphs-resnet8')"
says err "32 grey images of 12 x 12 in 2 classes: recipe glyphs-resnet8 (built in), with"
sha=$(python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])')
grep -q '^name = resnet8$' runs/glyphs-resnet8/recipe.ini || fail "the recipe is not saved"
grep -q "^path = $work/letters\$" runs/glyphs-resnet8/recipe.ini || fail "the data is not saved"
run 0 train runs/glyphs-resnet8/recipe.ini --out again --json
json "j['weights_sha256'] == '$sha' and j['recipe'] == 'runs/glyphs-resnet8/recipe.ini'"
run 0 train --data letters --steps 2 --batch 8 --resume --force --json --quiet
json "j['weights_sha256'] == '$sha'"
run 0 train --data text --steps 2 --batch 2 --set model.context=16 --out t --json --quiet
json "j['recipe'] == 'shakespeare-small' and j['tokens_per_s'] > 0"
run 0 train --data mixed --steps 1 --batch 4 --shards 2 --set data.size=40 --set model.width=8 --out m --json
json "j['recipe'] == 'photos-resnet18'"
run 0 train "$STINT_SOURCE/recipes/mnist-lenet5.ini" --data digits --steps 1 --batch 4 --out d --json
json "j['recipe'].endswith('recipes/mnist-lenet5.ini')"
grep -q "built in" err && fail "a recipe that was given is told"

# refused
run 2 train
says err "wants RECIPE, or --data PATH to choose one by, for example:"
run 2 plan --memory 100M
says err "wants RECIPE, or --data PATH"
run 5 train small
says err "small: is a folder, the file of a recipe is wanted; it holds images: give it by --data small"
run 5 train text
says err "text: is a folder, the file of a recipe is wanted; it holds text: give it by --data text"
run 5 train runs/glyphs-resnet8
says err "that of the run in it is runs/glyphs-resnet8/recipe.ini"
mkdir empty
run 4 train --data empty
says err "empty has no train split"
says err "or, for text, a file or a folder with *.txt"
run 4 train --data nowhere
says err "nowhere does not exist"
rm -r small/train
run 4 train --data small
says err "has no train split"
run 2 "trust" bits --data letters
says err "wants RECIPE"
finish

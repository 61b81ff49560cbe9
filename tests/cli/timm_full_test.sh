# Networks in timm's layout with random weights: probabilities and gradients beside the same
# networks in PyTorch, mcunet too. Skipped (77) without python3-torch.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python=${PYTHON:-/usr/bin/python3}
here=$(cd "$(dirname "$STINT_SOURCE/tests/cli/timm_torch.py")" && pwd)

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: $python has no torch (Debian: python3-torch)"
    exit 77
fi
"$python" "$here/timm_torch.py" images || fail "no images"
cat >mcunet.ini <<'INI'
[model]
name = mcunet-5fps
[data]
path = images
size = 96
[train]
steps = 1
batch = 4
shards = 1
[optimizer]
lr = 0.001
INI
run 0 train mcunet.ini -o mcunet -q
for name in resnet18 resnet50 mobilenetv2_100 mcunet; do
    model=mcunet
    if [ "$name" != mcunet ]; then
        "$python" "$here/timm_torch.py" folder "$name" "t_$name" || fail "$name: no folder"
        run 0 import hf "t_$name" --out "$name.st" --json
        json 'j["classes"] == 4'
        model=$name.st
    fi
    run 0 run "$model" images/test/*/*.png --top 4 --json -q
    cp out "$name.json"
    run 0 finetune "$model" --data images --what full --batch 4 --shards 1 --steps 1 --lr 1 --set optimizer.momentum=0 --set schedule.name=constant --set model.dropout=0 -o "step_$name" -q
    "$python" "$here/timm_torch.py" compare "$name" "$model" "$name.json" "step_$name/model.safetensors" ||
        fail "$name: another network than PyTorch's"
done
# A folder is taken as it is, and a new classifier for other classes.
cp -r images other && mv other/train/0 other/train/zero && mv other/test/0 other/test/zero
run 0 finetune t_mobilenetv2_100 --data other --what last --batch 4 --shards 1 --steps 1 -o from_timm -q
[ -s from_timm/start.safetensors ] || fail "no start.safetensors"
head -c 3000000 t_mobilenetv2_100/model.safetensors >cut.safetensors
mv cut.safetensors t_mobilenetv2_100/model.safetensors
run 4 import hf t_mobilenetv2_100 --out none.st
finish

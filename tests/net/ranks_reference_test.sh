# A loss against a reference, pruning in steps and the choice of an epoch: the bits of one
# process on several ranks, whether they are started by hand or by mpirun.
. "$(dirname "$0")/ranks_lib.sh"
small=(--set model.width=4)
taught=(net.ini "${small[@]}" --start first --reference first --sparsity 0.8 --set prune.epochs=1
    --set train.steps=0 --epochs 3 --set train.validation=0.2
    --set train.select=mismatch --lr 0.05 --json)
run 0 train net.ini "${small[@]}" --out first --quiet
run 0 train "${taught[@]}" --out one --quiet
want=$(sha out)
json 'j["chosen_epoch"] in (2, 3) and j["validation_mismatch"] >= 0'
json 'set(j["loss_parts"]) == {"hard", "pairing", "soft"}'
begin 3 "${taught[@]}" --out three
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "3 ranks: other weights"
run 0 diff one three
# An end before the last epoch: hardly anything is learnt.
bored=(net.ini "${small[@]}" --lr 1e-9 --set train.steps=0 --epochs 6 --set train.validation=0.2
    --set train.select=accuracy --set train.patience=2 --json)
run 0 train "${bored[@]}" --out alone --quiet
json 'j["steps"] < 6 * 4'
grep -q '"event":"enough"' alone/log.jsonl || fail "no word on the end"
want=$(sha out)
begin 3 "${bored[@]}" --out bored
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "3 ranks end elsewhere"
rm "bored/checkpoints/$(ls bored/checkpoints | tail -1)"
begin 2 "${bored[@]}" --out bored --resume
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "2 ranks that go on end elsewhere"
# Weights of the parts that are trained, and a run that goes on in a checkpoint's place.
taught+=(--set loss.weighting=learnable)
run 0 train "${taught[@]}" --out whole --quiet
want=$(sha out)
run 0 train "${taught[@]}" --out two --quiet
rm two/checkpoints/step-00000012.safetensors
begin 2 "${taught[@]}" --out two --resume
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "2 ranks that go on: other weights"
finish

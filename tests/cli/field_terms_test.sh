# Losses of fields as expressions: equations that no recipe has, a picture from its
# gradient, a distance from a curve; beside closed forms in NumPy. Refusals.
. "$(dirname "$0")/cli_lib.sh"
export XDG_CACHE_HOME="$work/cache"
oracle="$(cd "$(dirname "$0")" && pwd)/field_oracle.py"
cd "$work" || exit 1
python=/usr/bin/python3
$python "$oracle" make . || { fail "no NumPy"; finish; }

# recipe NAME STEPS BATCH, [field] from stdin
recipe() {
    cat >"$1.ini" <<INI
[model]
name = field
activation = tanh
width = 24
depth = 2
[train]
steps = $2
epochs = 100000
batch = $3
shards = 2
eval_every = 0
[optimizer]
name = adam
lr = 4e-3
[schedule]
name = cosine
[field]
INI
    cat >>"$1.ini"
}

# A fall with drag: u' = 4 - u^2, u(0) = 0, whose solution is 2 tanh(2 t).
recipe fall 1500 64 <<'INI'
coordinates = t
outputs = u
domain = 0:2
inside = u_t + u^2 - 4
start = u
start_weight = 10
start_points = 2
exact = 2*tanh(2*t)
INI
run 0 train fall.ini --out fall --json -q
json "j['relative_l2'] < 0.02 and 'psnr' not in j"
sha=$(sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out)
run 0 train fall.ini --out again --json -q -j 1
json "j['weights_sha256'] == '$sha'"
$python -c "import numpy as np; np.save('t.npy', np.linspace(0.1, 1.9, 60).astype('f4')[:, None])"
run 0 field eval fall --points t.npy --order 1 --out u.npy
$python - <<'PY' || fail "the fall's solution"
import numpy as np
t, u = np.load("t.npy")[:, 0].astype(float), np.load("u.npy").astype(float)
want = 2 * np.tanh(2 * t)
assert np.abs(u[:, 0] - want).max() < 0.06
assert np.abs(u[:, 1] - (4 - u[:, 0] ** 2)).max() < 0.25
PY

# Two outputs that turn around each other: u' = -v, v' = u.
recipe turn 3000 64 <<'INI'
coordinates = t
outputs = u,v
domain = 0:3
inside = u_t + v, v_t - u
start = u - 1, v
start_weight = 10
start_points = 2
exact = cos(t), sin(t)
INI
run 0 train turn.ini --out turn --json -q
json "j['relative_l2'] < 0.05"

# A picture from its gradient alone, but for a number that no gradient knows.
cat >gradient.ini <<'INI'
[model]
name = siren
width = 32
depth = 2
[field]
data = u_x - U_x, u_y - U_y
[data]
channels = 1
[train]
epochs = 250
batch = 768
shards = 2
eval_every = 0
[optimizer]
name = adam
lr = 2e-3
[schedule]
name = cosine
INI
run 0 train gradient.ini --data picture.png --out gradient -q -j 1
run 0 field eval gradient --grid 32x24 --order 0 --out g.npy
$python - <<'PY' || fail "the picture from its gradient"
import numpy as np
got = np.load("g.npy")[:, 0].astype(float)
p = np.load("picture.npy").reshape(-1, 3).astype(float) @ [0.299, 0.587, 0.114] / 127.5 - 1
error = (got - got.mean()) - (p - p.mean())
psnr = -10 * np.log10(((error / 2) ** 2).mean())
assert psnr > 30, psnr
PY

# Distances from a circle: u = 0 on it, |grad u| = 1 everywhere. The data's other two
# numbers are the normal.
mkdir circle
$python - <<'PY'
import numpy as np
a = np.linspace(0, 2 * np.pi, 256, endpoint=False)
np.save("circle/points.npy", (0.5 * np.stack([np.cos(a), np.sin(a)], 1)).astype("f4"))
np.save("circle/values.npy", np.stack([0 * a, np.cos(a), np.sin(a)], 1).astype("f4"))
PY
recipe circle 1000 256 <<'INI'
outputs = u,a,b
data = 10*u, u_x - A, u_y - B
inside = u_x^2 + u_y^2 - 1
INI
run 0 train circle.ini --data circle --out distance -q -j 1
run 0 field eval distance --grid 40x40 --order 0 --out d.npy
$python - <<'PY' || fail "distances from the circle"
import numpy as np
u = np.load("d.npy")[:, 0].reshape(40, 40)
x = (np.arange(40) + 0.5) / 20 - 1
r = np.hypot(*np.meshgrid(x, x))
band = np.abs(r - 0.5) < 0.2
assert np.abs(u - (r - 0.5))[band].max() < 0.06, np.abs(u - (r - 0.5))[band].max()
PY

# ---- ways ----

# A beam to the fourth order: by series, and by what counts fewer multiply-adds.
recipe beam 30 64 <<'INI'
coordinates = x
outputs = u
domain = 0:1
inside = (u_xxxx - pi^4*sin(pi*x))/50
border = 10*u, u_xx
exact = sin(pi*x)
INI
run 0 plan beam.ini --set model.depth=1 --json
json "[(d['set'], d['by'], d['multiply_adds']['jets']) for d in j['derivatives']] == [('inside', 'reverse', None), ('border', 'reverse', None)]"
run 0 plan beam.ini --set field.by=auto
says out "Derivatives of field.inside by jets: multiply-adds a point and step by jets"
says out "Derivatives of field.border by jets, Laplacians whole"
run 0 train beam.ini --out beam-r --json -q
reverse=$(sed 's/.*"relative_l2":\([0-9.e-]*\).*/\1/' out)
run 0 train beam.ini --out beam-j --json -q --set field.by=jets
json "abs(j['relative_l2'] / $reverse - 1) < 1e-3"
sha=$(sed 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/' out)
run 0 train beam.ini --out beam-a --json -q --set field.by=auto -j 1
json "j['weights_sha256'] == '$sha'"

# First derivatives of one output go backwards; a difference of second ones is no
# Laplacian, one of two coordinates of three neither.
recipe heat 2 64 <<'INI'
coordinates = x,y,t
outputs = u
inside = u_x + u_y
border = u_xx - u_yy + u_tt
start = u_xx + u_yy
INI
run 0 plan heat.ini --json --set field.by=auto --set model.depth=1
json "j['derivatives'][0]['by'] == 'reverse' and not any(d['laplacian'] for d in j['derivatives'])"
run 2 plan heat.ini --set field.by=forward
says err "field.by"

# ---- refusals ----

# refused STATUS WORDS FIELD-LINES
refused() {
    printf '%s\n' "$3" | recipe bad 2 16
    run "$1" train bad.ini --out no
    says err "$2"
    [ ! -e no ] || fail "a refused run left a folder"
}
refused 2 "column 8: no 'siin'; did you mean 'sin'?" $'outputs = u\ninside = u_xx + siin(x)'
refused 2 "has no output in it" $'outputs = u\ninside = x^2'
refused 2 "a derivative along no coordinate" $'outputs = u\nborder = u_xz'
refused 2 "which there is in field.data alone" $'outputs = u\ninside = u - U'
refused 2 "there are no data" $'outputs = u\ninside = u_x\ndata = u'
refused 2 "field.domain" $'outputs = u\ninside = u_x\ndomain = 1:0,0:1'
refused 2 "field.exact" $'outputs = u\ninside = u_x\nexact = u'
refused 2 "data.path" $'outputs = u\n'
refused 2 "too high an order" $'outputs = u\ninside = u_xxxxxxxxxxx'
recipe differences 2 16 <<'INI'
outputs = u,a,b
data = u_x - U_x
INI
run 4 train differences.ini --data circle --out no
says err "differences of data"
finish

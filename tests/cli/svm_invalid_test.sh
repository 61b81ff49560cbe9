# Files that are wrong in one way each, made from right ones: tables, models and ranges.
# Every one is refused with exit code 4, the file, and where lines matter the line.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1

# The command is to refuse file NAME at a line, 0: of any number, or of none.
refused() { # LINE NAME COMMAND...
    local line=$1 name=$2 before=$failures
    shift 2
    run 4 "$@"
    if [ "$line" = 0 ]; then says err "$name"; else says err "$name:$line"; fi
    [ "$failures" = "$before" ] || sed 's/^/    | /' "$name" >&2
}

# ---- no text at all ----
: >train.tar
refused 0 train.tar svm train train.tar m
says err "give the folder that holds"

# ---- LIBSVM text ----
libsvm() { # LINE TEXT
    printf "$2" >bad.libsvm
    refused "$1" bad.libsvm data check bad.libsvm
}
libsvm 2 '1 1:0.5 2:1\n1 1:a.5 2:1\n'  # a value that begins with a letter
libsvm 2 '1 1:0.5\n2 a1:0.5\n'         # an index that does
libsvm 2 '1 1:1\n1:2\n'                # a label on some rows only
libsvm 1 '1:1\n1 1:2\n'                # and the other way round
libsvm 1 '1 :1:0.5 2:1\n'              # colons in places of their own
libsvm 1 '1 1:0.5 2::1\n'
libsvm 1 '1 1:0.5 2:1:3\n'
libsvm 1 '1 1: 2:1\n'                  # no value, no index
libsvm 1 '1 1:1 :2\n'
libsvm 2 '1 1:1\n1 3:1 2:1\n'          # indices that descend, or stand still
libsvm 2 '1 1:1\n1 2:1 2:1\n'
libsvm 1 '1 -1:1\n'
printf '1 0:1 2:2\n2 0:3 2:1\n' >zero.libsvm # from 0: taken, with one warning
run 0 data check zero.libsvm
[ "$(grep -c "count from 0" err)" = 1 ] || fail "index 0: $(cat err)"

# ---- ARFF ----
arff() { # LINE TEXT
    printf "$2" >bad.arff
    refused "$1" bad.arff data check bad.arff
}
two='@ATTRIBUTE a NUMERIC\n@ATTRIBUTE b NUMERIC\n'
class='@ATTRIBUTE CLASS {x,y}\n'
printf "@RELATION r\n$two$class@DATA\n1,2,x\n{0 1,2 y}\n" >good.arff
run 0 data check good.arff
arff 1 "@RELATION\n$two$class@DATA\n1,2,x\n"                  # no name
arff 1 "@RELATION a b\n$two$class@DATA\n1,2,x\n"              # words without quotes
arff 1 "${two}@RELATION r\n$class@DATA\n1,2,x\n"              # not first
arff 2 "@RELATION r\n@ATTRIBUTE a b NUMERIC\n$class@DATA\n1,x\n"
arff 2 "@RELATION r\n@ATTRIBUTE NUMERIC\n$class@DATA\n1,x\n"
arff 4 "@RELATION r\n$two@ATTRIBUTE CLASS x,y\n@DATA\n1,2,x\n" # no braces
arff 4 "@RELATION r\n$two@ATTRIBUTE CLASS {}\n@DATA\n1,2,x\n"
arff 4 "@RELATION r\n$two@ATTRIBUTE CLASS {x,x}\n@DATA\n1,2,x\n"
arff 4 "@RELATION r\n$two@ATTRIBUTE CLASS {x,y z}\n@DATA\n1,2,x\n"
arff 4 "@RELATION r\n$two@ATTRIBUTE CLASS\n@DATA\n1,2,x\n"
arff 5 "@RELATION r\n$two$class$class@DATA\n1,2,x,x\n"        # two classes
arff 6 "@RELATION r\n$two$class@DATA\n1,x\n"                  # a value less, one more
arff 6 "@RELATION r\n$two$class@DATA\n1,2,3,x\n"
arff 6 "@RELATION r\n$two$class@DATA\n1,,x\n"
arff 0 "@RELATION r\n$two$class"                              # no data
arff 6 "@RELATION r\n$two$class@DATA\n@ATTRIBUTE c NUMERIC\n1,2,x\n"
arff 6 "@RELATION r\n$two$class@DATA\n1,2,z\n"                # a label that is none
arff 6 "@RELATION r\n$two$class@DATA\n{0 1,7 2,2 x}\n"        # an index beyond
arff 6 "@RELATION r\n$two$class@DATA\n{0 1,2 x\n"             # braces that miss
arff 6 "@RELATION r\n$two$class@DATA\n0 1,2 x}\n"
arff 3 "@RELATION r\n@ATTRIBUTE a NUMERIC\nthis is no line\n$class@DATA\n1,x\n"

training() { # TEXT: a table that may be, but that nothing is to learn from
    printf "$1" >bad.arff
    refused 0 bad.arff svm train bad.arff none.model
}
training "@RELATION r\n$two@ATTRIBUTE CLASS {x}\n@DATA\n1,2,x\n" # one label
training "@RELATION r\n$class@DATA\nx\ny\n"                     # no features
# Sparse rows leave out the first word of a label, as the format has it.
printf "@RELATION r\n$two$class@DATA\n{0 1,1 2}\n{1 1,2 y}\n" >first.arff
run 0 data table first.arff --out first.libsvm
grep -q '^x 1:1 2:2$' first.libsvm || fail "a label left out: $(cat first.libsvm)"

# ---- models ----
cat >good.model <<'END'
svm_type c_svc
kernel_type linear
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 2 1
SV
0.5 1:1 2:2 
0.25 1:2 3:1 
-0.75 2:1 
END
printf '1 1:1 2:1\n' >rows.libsvm
run 0 svm predict rows.libsvm good.model answers
model() { # LINE SED-COMMAND
    sed "$2" good.model >bad.model
    refused "$1" bad.model svm predict rows.libsvm bad.model answers
}
model 0 '1d'
for n in 2 3 4 5 6 7 8; do model 0 "${n}d"; done # a line of the header is missing
model 1 's/c_svc/d_svc/'
model 2 's/linear/cubic/'
model 3 's/nr_class 2/nr_class two/'
model 4 's/total_sv 3/total_sv x/'
model 4 's/total_sv 3/total_sv -3/'
model 0 's/total_sv 3/total_sv 4/'        # more than there are, or fewer
model 0 's/total_sv 3/total_sv 2/'
model 0 's/nr_sv 2 1/nr_sv 1 1/'          # not as many in all
model 0 's/nr_sv 2 1/nr_sv 3/'            # not as many as classes
model 0 's/nr_sv 2 1/nr_sv 1 1 1/'
model 0 's/label 1 -1/label 1/'
model 0 's/label 1 -1/label 1 -1 2/'
model 0 's/label 1 -1/label 1 1/'
model 0 's/nr_class 2/nr_class 3/'
model 0 's/rho 0.25/rho 0.25 0.5 1/'
model 0 's/rho 0.25/rho/'
model 0 's/rho 0.25/rho nan/'
model 0 '9,11d'                           # a header alone
model 0 '1,11d'                           # nothing
model 11 '11s/.*/x/'                      # a row that is none
model 5 's/^rho/weather 7\nrho/'          # an entry that nobody knows
model 9 '9s/0.5/0.5 0.5 0.5/'             # too many alphas
model 9 '9s/0.5 1/1/'                     # none
model 9 '9s/1:1/1:a/'
model 9 '9s/1:1/a:1/'
model 9 '9s/1:1/1::1/'
model 9 '9s/1:1/:1:1/'
model 9 '9s/1:1/1:/'
model 9 '9s/1:1/:1/'
model 9 '9s/1:1/3:1/'                     # indices that descend, or stand still
model 9 '9s/1:1/2:1/'
for entry in "gamma 0.5" "degree 3" "coef0 1"; do # of which a linear kernel has none
    model 3 "2s/\$/\\n$entry/"
done
rbf='2s/linear/rbf\ngamma 0.5'
model 4 "$rbf\\ndegree 3/"
model 4 "$rbf\\ncoef0 1/"
model 0 '2s/linear/rbf/'                  # and here gamma is missing
model 3 '2s/linear/sigmoid\ndegree 3\ngamma 1\ncoef0 0/'
sed '2s/linear/rbf\ngamma 0.5/' good.model >bad.model
run 0 svm predict rows.libsvm bad.model answers

# ---- ranges ----
range() { # LINE TEXT
    printf "$2" >bad.range
    refused "$1" bad.range svm scale -r bad.range rows.libsvm
}
range 4 'x\n-1 1\n1 0 1\n1 0 2\n'    # a feature twice
range 2 'x\n1 -1\n1 0 1\n'           # bounds the wrong way round
range 2 'x\n-1 one\n1 0 1\n'
range 3 'x\n-1 1\n1 0 b\n'
range 0 '1 0 1\n2 0 1\n'             # no header
range 3 'x\n-1 1\n1 0\n'             # too few, too many
range 3 'x\n-1 1\n1 0 1 2\n'
range 2 'x\n-1\n1 0 1\n'
range 2 'x\n-1 1 2\n1 0 1\n'
finish

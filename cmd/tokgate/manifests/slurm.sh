#!/bin/bash
#SBATCH --job-name={{.Name}}
#SBATCH --ntasks={{.N}}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={{.CPUs}}
#SBATCH --time={{.Time}}
#SBATCH --no-requeue
{{- if .Queue}}
#SBATCH --partition={{.Queue}}
{{- end}}
# --token-file lies where every node can read it. A worker that fails ends the others.
exec srun --kill-on-bad-exit=1 tokgate worker --join {{q .URL}} --token-file {{q .TokenFile}} \
  --fingerprint {{q .Fingerprint}}

// This file is empty on purpose: a package with an assembly file may declare functions without a body, which upstream.go does.

module backend

go 1.19

; What Numba's code asks for arrays that a kernel makes: one block of memory each, its head as
; Numba lays it out (count of owners, destructor, its argument, first byte, size).

%head = type { i64, ptr, ptr, ptr, i64 }

declare noalias ptr @malloc(i64)
declare void @free(ptr)

define noalias ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
entry:
  %alignment = zext i32 %align to i64
  %spare = add i64 %alignment, 64
  %room = add i64 %size, %spare
  %short = icmp ult i64 %room, %size
  br i1 %short, label %none, label %allocate
allocate:
  %block = call ptr @malloc(i64 %room)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %fill
fill:
  %start = ptrtoint ptr %block to i64
  %after = add i64 %start, 64
  %most = sub i64 %alignment, 1
  %over = add i64 %after, %most
  %mask = sub i64 0, %alignment
  %place = and i64 %over, %mask
  %data = inttoptr i64 %place to ptr
  store i64 1, ptr %block
  %destructor = getelementptr %head, ptr %block, i32 0, i32 1
  store ptr null, ptr %destructor
  %argument = getelementptr %head, ptr %block, i32 0, i32 2
  store ptr null, ptr %argument
  %first = getelementptr %head, ptr %block, i32 0, i32 3
  store ptr %data, ptr %first
  %length = getelementptr %head, ptr %block, i32 0, i32 4
  store i64 %size, ptr %length
  ret ptr %block
none:
  ret ptr null
}

; The same for a list, whose destructor is told of its items.
define noalias ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %called) {
entry:
  %block = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %leave, label %fill
fill:
  %destructor = getelementptr %head, ptr %block, i32 0, i32 1
  store ptr %called, ptr %destructor
  br label %leave
leave:
  ret ptr %block
}

define void @NRT_MemInfo_call_dtor(ptr %block) {
entry:
  %place = getelementptr %head, ptr %block, i32 0, i32 1
  %destructor = load ptr, ptr %place
  %plain = icmp eq ptr %destructor, null
  br i1 %plain, label %release, label %destroy
destroy:
  %first = getelementptr %head, ptr %block, i32 0, i32 3
  %data = load ptr, ptr %first
  %length = getelementptr %head, ptr %block, i32 0, i32 4
  %size = load i64, ptr %length
  call void %destructor(ptr %data, i64 %size, ptr null)
  br label %release
release:
  call void @free(ptr %block)
  ret void
}

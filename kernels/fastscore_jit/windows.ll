; What the C library of Windows lacks: reading at a place of a file, and the mark of code that
; computes with floating-point numbers, which linkers look for.

%overlapped = type { i64, i64, i64, ptr }

@_fltused = global i32 0

declare i64 @_get_osfhandle(i32)
declare i32 @ReadFile(i64, ptr, i32, ptr, ptr)

define i64 @pread(i32 %file, ptr %target, i64 %size, i64 %place) {
entry:
  %count = alloca i32
  %where = alloca %overlapped
  store i32 0, ptr %count
  store %overlapped zeroinitializer, ptr %where
  %offset = getelementptr %overlapped, ptr %where, i32 0, i32 2
  store i64 %place, ptr %offset
  %handle = call i64 @_get_osfhandle(i32 %file)
  %large = icmp ugt i64 %size, 1073741824
  %most = select i1 %large, i64 1073741824, i64 %size
  %length = trunc i64 %most to i32
  %done = call i32 @ReadFile(i64 %handle, ptr %target, i32 %length, ptr %count, ptr %where)
  %failed = icmp eq i32 %done, 0
  %read = load i32, ptr %count
  %wide = zext i32 %read to i64
  %result = select i1 %failed, i64 -1, i64 %wide
  ret i64 %result
}

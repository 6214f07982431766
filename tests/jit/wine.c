/* Calls kernels in libraries of Windows: wine.exe LIBRARY MEMORY [LIBRARY MEMORY ...]

   MEMORY is a file that is put at one address in this process and here, so that pointers in it
   hold. It begins with the addresses of a kernel's words and of its results, a place for its
   status, and the arrays among its results, which are written to the end of the file. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define PLACE 0x200000000000
#define SIZE (64 << 20)

typedef int32_t (*kernel)(const uint64_t *, uint64_t *);

int main(int count, char **words)
{
    uint64_t *memory = VirtualAlloc((void *)PLACE, SIZE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if ((uint64_t)memory != PLACE)
        return 1;
    for (int at = 1; at + 1 < count; at += 2) {
        HMODULE library = LoadLibraryA(words[at]);
        kernel entry = library ? (kernel)GetProcAddress(library, "fastscore_kernel") : NULL;
        FILE *file = fopen(words[at + 1], "rb");
        if (!entry || !file)
            return 2;
        size_t size = fread(memory, 1, SIZE, file);
        fclose(file);
        uint64_t *out = (uint64_t *)memory[1];
        memory[2] = (uint32_t)entry((const uint64_t *)memory[0], out);
        file = fopen(words[at + 1], "wb");
        fwrite(memory, 1, size, file);
        for (uint64_t array = 0; array < memory[3]; array++) {
            uint64_t *found = out + memory[4 + 3 * array];
            uint64_t bytes = memory[5 + 3 * array];
            for (uint64_t axis = 0; axis < memory[6 + 3 * array]; axis++)
                bytes *= found[2 + axis];
            fwrite((void *)found[1], 1, bytes, file);
        }
        if (fclose(file))
            return 3;
    }
    return 0;
}
